package history

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/gate/history/change"
)

// Bounds of pages.
const (
	drawnNights  = 400 // the newest
	listedNights = 60
	listedCauses = 3 // commits between two nights, by name
)

// CheckPage is what a check says, for terminals and pages.
func CheckPage(c *Checks) doc.Document {
	var d doc.Document
	nights, few := 0, 0
	for i := range c.Series {
		nights += c.Series[i].Nights
		if !c.Series[i].Enough {
			few++
		}
	}
	d.Add(doc.H(1, "changes", fmt.Sprintf("%s in %d series of %d nights, %d open", plural(len(c.Changes), "change"),
		len(c.Series), nights, c.Open)))
	if few > 0 {
		d.Add(doc.P(doc.Text(fmt.Sprintf("%d series have fewer than %d nights, in which no change can be found.", few, LeastNights)).With(doc.Muted)))
	}
	for i := range c.Changes {
		d.Add(changeBlocks(&c.Changes[i])...)
	}
	return d
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// changeBlocks tell one change.
func changeBlocks(f *Found) []doc.Block {
	tone, state := doc.Good, "better"
	switch {
	case f.Open:
		tone, state = doc.Bad, "open"
	case f.Gone:
		tone, state = doc.Muted, "gone since"
	case f.Ack != nil && f.Worse:
		tone, state = doc.Warn, "accepted"
	case f.Worse:
		tone, state = doc.Bad, "worse"
	}
	d := []doc.Block{doc.Heading{Level: 2, ID: "change-" + f.After.Commit,
		Spans: doc.Spans(doc.Text(unit.Change(f.Ratio-1)+" ").With(tone), doc.Name(f.Name()),
			doc.Text(", "+state))}}
	fields := doc.Fields{Items: []doc.Field{
		{Label: "Commits", Value: doc.Spans(doc.Code(Short(f.Before.Commit)), doc.Text(" → "),
			doc.Code(Short(f.After.Commit)),
			doc.Text(", "+f.After.Time.Format(time.DateOnly)+", found "+f.FoundAt.Format(time.DateOnly)))},
		{Label: "Level", Value: levelSpans(f)},
	}}
	add := func(label string, value ...doc.Span) {
		fields.Items = append(fields.Items, doc.Field{Label: label, Value: value})
	}
	if f.Cause != "" {
		add("Cause", doc.Name(f.Cause))
	}
	for i, c := range f.Commits {
		if i == listedCauses {
			add("", doc.Text(fmt.Sprintf("and %d more", len(f.Commits)-i)))
			break
		}
		add(map[bool]string{true: "Between"}[i == 0], doc.Code(Short(c.SHA)), doc.Text(" "), doc.Name(c.Subject))
	}
	if len(f.Owners) > 0 {
		add("Ask", doc.Name(strings.Join(f.Owners, ", ")))
	}
	if f.Ack != nil {
		add("Accepted", doc.Name(f.Ack.Reason), doc.Text(", up to "+f.Ack.Expires))
	}
	return append(d, fields)
}

func levelSpans(f *Found) []doc.Span {
	text := fmt.Sprintf("p %.1g", f.P)
	if f.Pinned != nil {
		return doc.Spans(doc.Text("ratio to "), doc.Code(Short(*f.Pinned)),
			doc.Text(fmt.Sprintf(", %.4f → %.4f, %s", f.Before.followed(), f.After.followed(), text)))
	}
	return doc.Spans(doc.Text(fmt.Sprintf("%s → %s, %s", unit.Format(f.Before.Value, f.Unit),
		unit.Format(f.After.Value, f.Unit), text)))
}

// WriteCheck writes a check for a terminal.
func WriteCheck(w io.Writer, c *Checks, o render.TerminalOptions) error {
	return render.Terminal(w, CheckPage(c), o)
}

// PageOptions are the choices of [Store.Page].
type PageOptions struct {
	CheckOptions
	// Link is where the report of a run lies; empty: it is not linked.
	Link func(r *Run) string
}

// Page is the history as one page: each series over its nights with the band of its noise, what changed and why.
func (s *Store) Page(ctx context.Context, c *Checks, o PageOptions) (doc.Document, error) {
	d := CheckPage(c)
	workloads, err := s.Workloads(ctx)
	if err != nil {
		return d, err
	}
	epochs, err := s.Epochs(ctx)
	if err != nil {
		return d, err
	}
	metrics := o.Metrics
	if len(metrics) == 0 {
		metrics = []string{StepTime}
	}
	n := 0
	for _, metric := range metrics {
		list, err := s.Series(ctx, o.Filter, metric)
		if err != nil {
			return d, err
		}
		for i := range list {
			if len(list[i].Nights) == 0 {
				continue
			}
			n++
			d.Add(seriesBlocks(&list[i], n, workloads[list[i].Workload], epochs, &o)...)
		}
	}
	d.Add(doc.P(doc.Text("How a change is found, and how often that is wrong: ").With(doc.Muted), doc.Code("explain doc change-points")))
	return d, nil
}

// seriesBlocks are the part of a page on one series.
func seriesBlocks(x *Series, n int, w Workload, epochs map[string]Workload, o *PageOptions) []doc.Block {
	id := "series-" + strconv.Itoa(n)
	blocks := []doc.Block{doc.Heading{Level: 2, ID: id,
		Spans: doc.Spans(doc.Name(x.Of()), doc.Text(", "+x.Branch+", "), doc.Name(x.Repository))}}
	var about []doc.Span
	for i, k := range slices.Sorted(maps.Keys(w)) {
		if i > 0 {
			about = append(about, doc.Text(", "))
		}
		about = append(about, doc.Text(k+" "), doc.Name(w[k]))
	}
	blocks = append(blocks, doc.P(about...), chart(x, id, o.Change), nightTable(x, o))
	if e := epochList(x, epochs); len(e.Items) > 0 {
		blocks = append(blocks, doc.Details{Summary: doc.Spans(doc.Text("Environments")), Blocks: []doc.Block{e}})
	}
	return blocks
}

// chart draws the newest nights: points, the level between changes, the band of noise about it.
func chart(x *Series, id string, o change.Options) doc.Chart {
	from := max(0, len(x.Nights)-drawnNights)
	changes := x.Changes(o)
	c := doc.Chart{ID: id, Title: x.Of(), Kind: "line", Unit: x.Unit, XTitle: "nights, the newest last"}
	if x.Pinned != nil {
		c.Title, c.Unit = x.Of()+", ratio to "+Short(*x.Pinned), ""
	}
	line := func(name, style string) *doc.Series { return &doc.Series{Name: name, Style: style} }
	nights, level, low, high := line("night", "points"), line("level", "line"), line("noise, 2σ below", "line"), line("noise, 2σ above", "line")
	changed, moved := line("change", "points"), line("another environment", "points")
	put := func(s *doc.Series, i int, v float64) {
		s.Labels, s.Values = append(s.Labels, strconv.Itoa(i-from+1)), append(s.Values, v)
	}
	median, spread := x.levels(changes)
	for i := from; i < len(x.Nights); i++ {
		v := x.Nights[i].followed()
		put(nights, i, v)
		put(level, i, median[i])
		put(low, i, median[i]*math.Exp(-2*spread[i]))
		put(high, i, median[i]*math.Exp(2*spread[i]))
		if i > 0 && x.Pinned == nil && x.Nights[i].Epoch != x.Nights[i-1].Epoch {
			put(moved, i, v)
		}
	}
	for _, p := range changes {
		if p.At >= from {
			put(changed, p.At, x.Nights[p.At].followed())
		}
	}
	for _, s := range []*doc.Series{level, low, high, nights, moved, changed} {
		if len(s.Values) > 0 {
			c.Series = append(c.Series, *s)
		}
	}
	return c
}

// levels are, of each night, the median of the nights that share its level, and their spread: the standard deviation of
// ln from the median deviation.
func (s *Series) levels(changes []change.Change) (level, spread []float64) {
	type group struct {
		epoch string
		after int
	}
	of := func(i int) group {
		g := group{after: -1}
		if s.Pinned == nil {
			g.epoch = s.Nights[i].Epoch
		}
		for _, c := range changes {
			if c.At <= i && (s.Pinned != nil || s.Nights[c.At].Epoch == g.epoch) {
				g.after = c.At
			}
		}
		return g
	}
	values := map[group][]float64{}
	for i := range s.Nights {
		values[of(i)] = append(values[of(i)], s.Nights[i].followed())
	}
	middle, width := map[group]float64{}, map[group]float64{}
	for g, v := range values {
		middle[g] = change.Median(v)
		var off []float64
		for _, x := range v {
			off = append(off, math.Abs(math.Log(x/middle[g])))
		}
		width[g] = 1.4826 * change.Median(off)
	}
	for i := range s.Nights {
		level, spread = append(level, middle[of(i)]), append(spread, width[of(i)])
	}
	return level, spread
}

// nightTable lists the newest nights, with links to their reports.
func nightTable(x *Series, o *PageOptions) doc.Block {
	t := doc.Table{ID: "nights", Columns: []doc.Column{{Title: "Time"}, {Title: "Commit"},
		{Title: "Value", Align: doc.Right},
		{Title: "Ratio to the reference", Align: doc.Right}, {Title: "Captures", Align: doc.Right}, {Title: "Report"}}}
	for i := len(x.Nights) - 1; i >= max(0, len(x.Nights)-listedNights); i-- {
		n := &x.Nights[i]
		ratio := ""
		if n.Ratio != nil {
			ratio = fmt.Sprintf("%.4f", *n.Ratio)
		}
		var links []doc.Span
		for k := range n.Runs {
			if o.Link == nil {
				break
			}
			if k > 0 {
				links = append(links, doc.Text(" "))
			}
			links = append(links, doc.Link(strconv.Itoa(k+1), o.Link(&n.Runs[k])))
		}
		t.Rows = append(t.Rows, []doc.Cell{doc.Spans(doc.Text(n.Time.Format("2006-01-02 15:04"))),
			doc.Spans(doc.Code(Short(n.Commit))),
			doc.Spans(doc.Text(unit.Format(n.Value, x.Unit))), doc.Spans(doc.Text(ratio)),
			doc.Spans(doc.Text(strconv.Itoa(len(n.Runs)))), links})
	}
	return doc.Details{Summary: doc.Spans(doc.Text("The newest " + plural(len(t.Rows), "night"))), Blocks: []doc.Block{t}}
}

// epochList says from when on each environment of a series was in use, and what it is.
func epochList(x *Series, epochs map[string]Workload) doc.List {
	var l doc.List
	seen := map[string]bool{}
	for _, n := range x.Nights {
		if seen[n.Epoch] {
			continue
		}
		seen[n.Epoch] = true
		spans := doc.Spans(doc.Text("from "+n.Time.Format(time.DateOnly)+" "), doc.Code(n.Epoch), doc.Text(": "))
		for i, k := range slices.Sorted(maps.Keys(epochs[n.Epoch])) {
			if i > 0 {
				spans = append(spans, doc.Text(", "))
			}
			spans = append(spans, doc.Text(k+" "), doc.Name(epochs[n.Epoch][k]))
		}
		l.Items = append(l.Items, doc.Item{Spans: spans})
	}
	return l
}

// bars of a sparkline, from the lowest.
const bars = "▁▂▃▄▅▆▇█"

// Sparkline draws values as one line of text, a character for each. Values within 2 % of each other look alike.
func Sparkline(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	if room := 0.02 * math.Abs(high); high-low < room {
		low, high = low-(room-(high-low))/2, high+(room-(high-low))/2
	}
	steps := []rune(bars)
	var b strings.Builder
	for _, v := range values {
		at := 0
		if high > low {
			at = int((v - low) / (high - low) * float64(len(steps)))
		}
		b.WriteRune(steps[min(max(at, 0), len(steps)-1)])
	}
	return b.String()
}

// Line is the newest runs of a series in one line of text, of at most n nights.
func (s *Series) Line(n int) string {
	nights := s.Nights[max(0, len(s.Nights)-n):]
	if len(nights) == 0 {
		return ""
	}
	var values []float64
	for i := range nights {
		values = append(values, nights[i].followed())
	}
	first, last := values[0], values[len(values)-1]
	ends := unit.Format(nights[0].Value, s.Unit) + " → " + unit.Format(nights[len(nights)-1].Value, s.Unit)
	if s.Pinned != nil {
		ends = fmt.Sprintf("%.3f → %.3f of %s", first, last, Short(*s.Pinned))
	}
	return fmt.Sprintf("%s %s (%s, %s)", Sparkline(values), ends, unit.Change(last/first-1), plural(len(nights), "night"))
}
