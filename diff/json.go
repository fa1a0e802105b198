package diff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// maxBytes bounds what Read accepts. A comparison has some hundred rows.
const maxBytes = 64 << 20

// Write validates the comparison and writes it as JSON, one line per row of the long lists, so that two comparisons can
// be compared line by line. The same comparison always gives the same bytes.
func Write(w io.Writer, c *Comparison) error {
	if err := c.Validate(); err != nil {
		return err
	}
	l := &lines{}
	field(l, "schema", c.Schema)
	field(l, "tool", c.Tool)
	field(l, "verdict", c.Verdict)
	field(l, "cause", c.Cause)
	field(l, "comparable", c.Comparable)
	field(l, "depth", c.Depth)
	field(l, "identical", c.Identical)
	list(l, "reasons", c.Reasons)
	field(l, "base", c.Base)
	field(l, "head", c.Head)
	field(l, "unit", c.Unit)
	list(l, "primary", c.Primary)
	l.attribution(&c.Attribution)
	list(l, "kernels", c.Kernels)
	list(l, "api", c.API)
	list(l, "structure", c.Structure)
	list(l, "mix", c.Mix)
	list(l, "gates", c.Gates)
	list(l, "residue", c.Residue)
	field(l, "counts", c.Counts)
	if l.err != nil {
		return l.err
	}
	l.b.WriteString("\n}\n")
	_, err := w.Write(l.b.Bytes())
	return err
}

// lines writes a JSON object, a field or an element of a list per line.
type lines struct {
	b   bytes.Buffer
	err error
}

func (l *lines) name(name string) {
	if l.b.Len() == 0 {
		l.b.WriteString("{\n")
	} else {
		l.b.WriteString(",\n")
	}
	fmt.Fprintf(&l.b, "%q: ", name)
}

// put writes a value without HTML escaping, so that kernel names can be searched for.
func put[T any](l *lines, v T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && l.err == nil {
		l.err = err
	}
	l.b.Write(bytes.TrimRight(b.Bytes(), "\n"))
}

func field[T any](l *lines, name string, v T) {
	l.name(name)
	put(l, v)
}

func list[T any](l *lines, name string, v []T) {
	l.name(name)
	l.b.WriteByte('[')
	for i := range v {
		if i > 0 {
			l.b.WriteByte(',')
		}
		l.b.WriteByte('\n')
		put(l, &v[i])
	}
	if len(v) > 0 {
		l.b.WriteByte('\n')
	}
	l.b.WriteByte(']')
}

// attribution writes the rows of the attribution one per line too.
func (l *lines) attribution(a *Attribution) {
	l.name("attribution")
	var inner lines
	field(&inner, "metric", a.Metric)
	field(&inner, "base", a.Base)
	field(&inner, "head", a.Head)
	field(&inner, "total_delta", a.TotalDelta)
	list(&inner, "rows", a.Rows)
	field(&inner, "residual", a.Residual)
	l.b.Write(inner.b.Bytes())
	l.b.WriteString("\n}")
	if l.err == nil {
		l.err = inner.err
	}
}

// Read parses a comparison and validates it. Unknown fields are ignored; another major version is an error.
func Read(r io.Reader) (*Comparison, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("comparison is larger than %d MB", maxBytes>>20)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("not a comparison: %w", err)
	}
	switch {
	case head.Schema == SchemaID:
	case strings.HasPrefix(head.Schema, "explain.comparison/"):
		return nil, fmt.Errorf("comparison has format %q, this version reads %q: make it again, or use the explain that wrote it", head.Schema, SchemaID)
	default:
		return nil, fmt.Errorf("not an explain comparison: field \"schema\" is %q, expected %q", head.Schema, SchemaID)
	}
	c := new(Comparison)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("comparison cannot be read: %w", err)
	}
	c.fill()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// fill replaces nil slices and maps: "never null" holds for what was read as for what is written.
func (c *Comparison) fill() {
	orEmpty(&c.Reasons)
	orEmpty(&c.Base.Names)
	orEmpty(&c.Head.Names)
	orEmpty(&c.Primary)
	orEmpty(&c.Attribution.Rows)
	orEmpty(&c.Kernels)
	orEmpty(&c.API)
	orEmpty(&c.Structure)
	orEmpty(&c.Mix)
	orEmpty(&c.Gates)
	orEmpty(&c.Residue)
	for i := range c.Primary {
		r := &c.Primary[i]
		orEmpty(&r.BaseValues)
		orEmpty(&r.HeadValues)
		if r.Labels == nil {
			r.Labels = report.Labels{}
		}
	}
	for i := range c.Gates {
		if c.Gates[i].Labels == nil {
			c.Gates[i].Labels = report.Labels{}
		}
	}
}

// closeEnough bounds, in ns, how far parts may be from their sum: means of integers, rounded to 53 bits and added up.
const closeEnough = 0.5

// Validate reports the first thing that breaks the contract of a comparison: a null list, a number that is not finite, a
// word that is none of its kind, parts that do not sum.
func (c *Comparison) Validate() error {
	if c.Schema != SchemaID {
		return fmt.Errorf("comparison: schema is %q, expected %q", c.Schema, SchemaID)
	}
	if c.Reasons == nil || c.Base.Names == nil || c.Head.Names == nil || c.Primary == nil || c.Attribution.Rows == nil || c.Kernels == nil ||
		c.API == nil || c.Structure == nil || c.Mix == nil || c.Gates == nil || c.Residue == nil {
		return errors.New("comparison: a list is null")
	}
	if !c.Verdict.valid() {
		return fmt.Errorf("comparison: verdict is %q", c.Verdict)
	}
	switch c.Depth {
	case DepthNone, DepthUnit, DepthKernel:
	default:
		return fmt.Errorf("comparison: depth is %q", c.Depth)
	}
	if !c.Comparable && len(c.Reasons) == 0 {
		return errors.New("comparison: not comparable, and no reason")
	}
	for i := range c.Primary {
		if err := c.Primary[i].validate(); err != nil {
			return fmt.Errorf("comparison: primary row %s: %w", c.Primary[i].Metric, err)
		}
	}
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if !k.Class.valid() || k.BaseName == nil && k.HeadName == nil || !finite(k.Delta, k.CountEffect, k.PerCallEffect) ||
			!known(k.Base, k.Head, k.Ratio, k.BaseCount, k.HeadCount, k.Share, k.P, k.PAdjusted) || !k.Test.valid() {
			return fmt.Errorf("comparison: kernel row %d is not valid", i)
		}
		if math.Abs(k.CountEffect+k.PerCallEffect-k.Delta) > closeEnough {
			return fmt.Errorf("comparison: kernel row %d: its effects do not sum to its change", i)
		}
	}
	for i := range c.API {
		a := &c.API[i]
		if !a.Class.valid() || !known(a.BaseCount, a.HeadCount, a.BaseTime, a.HeadTime, a.BaseMean, a.HeadMean, a.Ratio) {
			return fmt.Errorf("comparison: API row %d is not valid", i)
		}
	}
	for i := range c.Structure {
		if s := &c.Structure[i]; !s.Class.valid() || s.ID == "" || !known(s.Base, s.Head) {
			return fmt.Errorf("comparison: structural row %d is not valid", i)
		}
	}
	for i := range c.Mix {
		if m := &c.Mix[i]; !known(m.BaseTime, m.HeadTime, m.Ratio, m.BaseShare, m.HeadShare) {
			return fmt.Errorf("comparison: row %d of the mix is not valid", i)
		}
	}
	for i := range c.Gates {
		if g := &c.Gates[i]; !g.Verdict.valid() || !g.Class.valid() || g.Labels == nil || !known(g.Base, g.Head, g.Delta, g.Ratio) {
			return fmt.Errorf("comparison: gate %s is not valid", g.Rule)
		}
	}
	return c.Attribution.validate()
}

func (r *Row) validate() error {
	switch {
	case !r.Class.valid():
		return fmt.Errorf("class is %q", r.Class)
	case r.Labels == nil || r.BaseValues == nil || r.HeadValues == nil:
		return errors.New("a list or map is null")
	case !known(r.Base, r.Head, r.Delta, r.Ratio, r.NoiseFloor, r.P, r.PAdjusted, r.EffectSize) || !finite(r.BaseValues...) || !finite(r.HeadValues...):
		return errors.New("is not finite")
	case r.Interval != nil && !finite(r.Interval.Low, r.Interval.High, r.Interval.Level):
		return errors.New("interval is not finite")
	case !r.Test.valid():
		return errors.New("test is not finite")
	}
	return nil
}

func (t *Test) valid() bool {
	return t == nil || finite(t.Effect, t.SE, t.DF, t.Tau, t.S2, t.Moderated)
}

// validate checks that the rows of each kind sum to what they split.
func (a *Attribution) validate() error {
	if !finite(a.Base, a.Head, a.TotalDelta, a.Residual) {
		return errors.New("comparison: attribution is not finite")
	}
	if len(a.Rows) == 0 {
		return nil
	}
	var classes, fine float64
	for i := range a.Rows {
		r := &a.Rows[i]
		if !finite(r.Base, r.Head, r.Delta) || !known(r.CountEffect, r.PerCallEffect) {
			return fmt.Errorf("comparison: attribution to %s is not finite", r.ID)
		}
		switch {
		case r.Kind == KindClass:
			classes += r.Delta
			if r.ID == ClassCopy {
				fine += r.Delta
			}
		case r.Kind == KindKernel || r.Kind == KindOthers || r.Kind == KindCause:
			fine += r.Delta
		case r.Kind != KindCategory:
			return fmt.Errorf("comparison: attribution row %s has kind %q", r.ID, r.Kind)
		}
		if r.CountEffect != nil && r.PerCallEffect != nil && math.Abs(*r.CountEffect+*r.PerCallEffect-r.Delta) > closeEnough {
			return fmt.Errorf("comparison: attribution to %s: its effects do not sum to its change", r.ID)
		}
	}
	if math.Abs(classes-a.TotalDelta) > closeEnough || math.Abs(fine+a.Residual-a.TotalDelta) > closeEnough {
		return fmt.Errorf("comparison: attribution does not close: classes %g, rows %g and residual %g, total %g", classes, fine, a.Residual, a.TotalDelta)
	}
	return nil
}

func (v Verdict) valid() bool {
	switch v {
	case Pass, Warn, Inconclusive, Fail, Error:
		return true
	}
	return false
}

func (c Class) valid() bool {
	switch c {
	case Improved, Regressed, Same, Added, Removed, Unsettled:
		return true
	}
	return false
}

func known(values ...*float64) bool {
	for _, v := range values {
		if v != nil && !finite(*v) {
			return false
		}
	}
	return true
}
