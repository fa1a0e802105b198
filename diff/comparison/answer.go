package comparison

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Answer is what a comparison comes to: the number that decided, in its own direction, and up to three causes. Every
// output shows it, and none says it in words of its own.
type Answer struct {
	Direction Direction `json:"direction"`
	Metric    string    `json:"metric"` // whose numbers these are; empty if none decided
	Change    *float64  `json:"change"` // head over base less 1: 0.118 is +11.8 %; null if the base is 0 or not known
	From      *float64  `json:"from"`   // of the base
	To        *float64  `json:"to"`     // of the head
	Unit      string    `json:"unit"`   // of both: ns, 1, …
	Per       string    `json:"per"`    // the unit: decode step, batch 16; empty if there is none
	Of        *string   `json:"of"`     // "3 of 26 steps", where the change is in some of them; else null
	// Rows are causes, the one that explains most first; together with Rest they sum to the change of the mean unit.
	Rows []AnswerRow `json:"rows"`
	Rest *float64    `json:"rest"` // ns, that the rows leave; null if they do not sum to a change
	// Resolution is the smallest loss that would have failed, 0.03 is 3 %, where the answer is that nothing changed by
	// as much.
	Resolution *float64 `json:"resolution,omitempty"`
	Notes      []string `json:"notes"` // what else there is to know, the most important first
}

// AnswerRow is one cause: everything that is one effect.
type AnswerRow struct {
	Delta float64  `json:"delta"` // ns per unit
	Part  string   `json:"part"`  // kernel, kernels, communication, copy, idle, busy
	What  string   `json:"what"`
	Where string   `json:"where"` // before #60 (sampling); empty if no place stands out
	With  []string `json:"with"`  // what goes with it: calls, copies, launch geometry
}

// Parts of an answer's rows.
const (
	AnswerKernel  = "kernel"        // one kernel, or what replaced it
	AnswerKernels = "kernels"       // several
	AnswerComm    = "communication" // exposed
	AnswerCopy    = "copy"          // exposed
	AnswerIdle    = "idle"
	AnswerBusy    = "busy" // all GPU work, where kernels are hidden
)

// Direction of an answer.
type Direction string

// Directions. More and Less are of what is no time.
const (
	Slower        Direction = "slower"
	Faster        Direction = "faster"
	More          Direction = "more"
	Less          Direction = "less"
	Unchanged     Direction = "unchanged"
	NotSettled    Direction = "not_settled"
	NotComparable Direction = "not_comparable"
	NoDirection   Direction = "none" // there is no base, or no number
)

// MaxAnswerRows bounds the causes.
const MaxAnswerRows = 3

// Size is the change with its word: +11.8 % slower, no change beyond noise.
func (a *Answer) Size() string {
	change := NoValue
	switch {
	case a.Change != nil && a.Unit != report.Ratio:
		change = unit.Change(Value(a.Change))
	case a.From != nil && a.To != nil:
		change = unit.Delta(Value(a.To)-Value(a.From), a.Unit)
	}
	metric := a.Metric
	if OfTime(metric) {
		metric = ""
	}
	switch a.Direction {
	case Slower, Faster:
		return change + " " + string(a.Direction)
	case More, Less:
		return strings.TrimPrefix(metric+" "+change, " ")
	case Unchanged:
		switch {
		case a.From == nil:
			return "no change"
		case metric != "":
			return metric + " unchanged (" + change + ")"
		}
		if a.Resolution != nil {
			return "no change beyond ±" + unit.Percent(Value(a.Resolution)) + " (" + change + ")"
		}
		return "no change beyond noise (" + change + ")"
	case NotSettled:
		return strings.TrimPrefix(metric+" not settled ("+change+")", " ")
	case NotComparable:
		return "not comparable"
	case NoDirection:
	}
	return ""
}

// Sides are both values with what they are of: 2.395 → 2.678 ms per decode step, batch 16.
func (a *Answer) Sides() string {
	if a.From == nil || a.To == nil {
		return ""
	}
	text := FromTo(Value(a.From), Value(a.To), a.Unit)
	switch {
	case a.Metric == MetricWork:
		text += " for the base's work"
	case a.Per != "":
		text += " per " + a.Per
	}
	if _, stat, ok := strings.Cut(a.Metric, "unit.time."); ok {
		if stat == "p50" {
			stat = "median"
		}
		text += ", " + stat
	}
	return text
}

// FromTo are both values, with their unit once if it is the same: 2.395 → 2.678 ms.
func FromTo(base, head float64, u string) string {
	from, to := unit.Format(base, u), unit.Format(head, u)
	if number, suffix, ok := strings.Cut(from, " "); ok && strings.HasSuffix(to, " "+suffix) {
		from = number
	}
	return from + " → " + to
}

// OfRow fills in the number of a row, in its own direction. A verdict that is no doubt leaves none of the number.
func (a *Answer) OfRow(row *Row, verdict Verdict) {
	a.Metric, a.From, a.To, a.Unit = row.Metric, row.Base, row.Head, row.Unit
	if row.Ratio != nil {
		a.Change = new(Value(row.Ratio) - 1)
	}
	way := DirectionOf(row.Metric, Value(row.Delta))
	switch row.Class {
	case Same:
		a.Direction = Unchanged
	case Unsettled:
		a.Direction = NotSettled
		if x := row.Interval; verdict == Pass || verdict == Warn || verdict == None {
			if verdict != None { // a study has no rule that held
				a.Direction = Unchanged
			}
			if x != nil && (x.Low-1)*(x.High-1) > 0 {
				a.Direction = way
			}
		}
	case Improved, Regressed, Added, Removed:
		a.Direction = way
	}
}

// DirectionOf is the word for a change of a metric.
func DirectionOf(metric string, d float64) Direction {
	up, down := More, Less
	if OfTime(metric) {
		up, down = Slower, Faster
	}
	switch {
	case d > 0:
		return up
	case d < 0:
		return down
	}
	return Unchanged
}

// Text is a cause in words, without its size.
func (r *AnswerRow) Text() string {
	text := r.What
	if r.Where != "" {
		text += " " + r.Where
	}
	if len(r.With) > 0 {
		text += ": " + strings.Join(r.With, ", ")
	}
	return text
}

// Brief is Text in at most so many words. It leaves out the least useful first: what else goes with the cause, then its
// place; what goes with it first stays as long as anything does. "…" stands for what was left out at the end.
func (r *AnswerRow) Brief(words int) string {
	for _, where := range []string{r.Where, ""} {
		for n := len(r.With); n > 0 || n == len(r.With); n-- {
			b := AnswerRow{What: r.What, Where: where, With: r.With[:n]}
			text := b.Text()
			if n < len(r.With) {
				text += " …"
			}
			if len(strings.Fields(text)) <= words {
				return text
			}
		}
	}
	b := AnswerRow{What: r.What, With: r.With[:min(1, len(r.With))]}
	fields := strings.Fields(b.Text())
	return strings.TrimRight(strings.Join(fields[:min(words, len(fields))], " "), ",:;") + " …"
}

// RestText is what the rows leave; empty if the rows, as they are rounded, leave nothing.
func (a *Answer) RestText() string {
	largest := 0.0
	for i := range a.Rows {
		largest = max(largest, math.Abs(a.Rows[i].Delta))
	}
	if a.Rest == nil || math.Abs(Value(a.Rest)) < max(0.5, largest/1000) || len(a.Rows) == 0 {
		return ""
	}
	return unit.Delta(Value(a.Rest), report.Nanoseconds)
}

// String is the answer in one sentence.
func (a *Answer) String() string {
	var parts []string
	if size := a.Size(); size != "" {
		text := strings.ToUpper(size[:1]) + size[1:]
		if sides := a.Sides(); sides != "" {
			text += ", " + sides
		}
		if a.Of != nil {
			text += ", in " + Value(a.Of)
		}
		parts = append(parts, text)
	}
	for i := range a.Rows {
		text := unit.Delta(a.Rows[i].Delta, report.Nanoseconds) + " " + a.Rows[i].Text()
		if i == 0 && len(parts) > 0 {
			parts[0] += ": " + text
			continue
		}
		parts = append(parts, text)
	}
	if rest := a.RestText(); rest != "" {
		parts = append(parts, rest+" the rest")
	}
	sep := "; "
	if a.From == nil && len(a.Rows) == 0 { // the notes say why
		sep = ": "
	}
	text := strings.Join(parts, "; ")
	if notes := strings.Join(a.Notes, "; "); text == "" || notes == "" {
		text += notes
	} else {
		text += sep + notes
	}
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// validate checks that rows and rest sum to the change that they are of.
func (a *Answer) validate(total float64) error {
	if len(a.Rows) > MaxAnswerRows || len(a.Notes) > maxFewRows {
		return errors.New("comparison: the answer's rows are not ones that explain writes")
	}
	switch a.Direction {
	case Slower, Faster, More, Less, Unchanged, NotSettled, NotComparable, NoDirection:
	default:
		return fmt.Errorf("comparison: the answer's direction is %q", a.Direction)
	}
	sum := Value(a.Rest)
	for i := range a.Rows {
		sum += a.Rows[i].Delta
	}
	if a.Rest != nil && math.Abs(sum-total) > closeEnough {
		return fmt.Errorf("comparison: the answer does not close: %g of %g", sum, total)
	}
	return nil
}
