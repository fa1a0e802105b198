package comparison

import "slices"

// Reason says why in one sentence, and what would help.
type Reason struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
	// Field is the field of the environment that differs, if it is one, and Base and Head are its values.
	Field string `json:"field,omitempty"`
	Base  string `json:"base,omitempty"`
	Head  string `json:"head,omitempty"`
}

// Reason adds a reason why the verdict is not better.
func (c *Comparison) Reason(code Code, text string) {
	c.Reasons = append(c.Reasons, Reason{Code: code, Text: text})
}

// Warn adds a warning.
func (c *Comparison) Warn(code Code, text string) {
	c.Warnings = append(c.Warnings, Reason{Code: code, Text: text})
}

// Refuse adds a reason why the sides are not comparable.
func (c *Comparison) Refuse(code Code, text string) {
	c.Comparable = false
	c.Reason(code, text)
}

// Has reports whether a reason is among those of the comparison.
func (c *Comparison) Has(code Code) bool {
	return slices.ContainsFunc(c.Reasons, func(r Reason) bool { return r.Code == code })
}
