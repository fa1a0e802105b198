package history

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/gate/history/change"
)

// Bounds of pages.
const (
	drawnNights  = 400 // the newest
	drawnSeries  = 60  // those with the newest nights
	listedNights = 60
	listedCauses = 3  // commits between two nights that are listed by name
	listedNoise  = 12 // series whose noise a check prints
)

// CheckPage returns the results of a check as a document for terminals.
func CheckPage(c *Checks) doc.Document {
	d := checkHead(c)
	for _, f := range c.Changes {
		d.Add(changeBlocks(f)...)
	}
	d.Add(borderBlocks(c)...)
	d.Add(doc.Part(doc.H(2, "noise", "What is known about the noise of the nights"), noiseList(c.Series))...)
	return d
}

// checkHead returns the head of the page: the counts of changes, series, nights and open changes.
func checkHead(c *Checks) (d doc.Document) {
	nights := lists.Sum(c.Series, func(x *Checked) int { return x.Nights })
	short := lists.Count(c.Series, func(x *Checked) bool { return !x.Enough })
	blind := lists.Count(c.Series, func(x *Checked) bool { return x.Enough && x.Blind })
	d.Add(doc.H(1, "changes", fmt.Sprintf("%s in %d series of %d nights, %d open", wording.Count(len(c.Changes), "change"),
		len(c.Series), nights, c.Open)))
	if short > 0 {
		d.Add(doc.P(doc.Text(fmt.Sprintf("%d series have fewer than %d nights, in which no change can be found.", short, LeastNights)).With(doc.Warn)))
	}
	if blind > 0 {
		d.Add(doc.P(doc.Text(fmt.Sprintf("In %d of %d series the nights are too few, for their noise, to show a change of %s.", blind, len(c.Series), unit.Percent(mostUnseen))).With(doc.Warn)))
	}
	return d
}

// borderBlocks list for each border what changed in the environment, and how the level changed.
func borderBlocks(c *Checks) []doc.Block {
	var l doc.List
	for _, b := range c.Borders {
		fields := doc.Joined(", ", b.Fields, func(f Moved) any {
			return doc.Spans(f.Name+" ", doc.Name(cmp.Or(f.Before, "unknown")), " → ", doc.Name(cmp.Or(f.After, "unknown")))
		})
		text := "level " + unit.Change(b.Ratio-1)
		if b.SE != nil {
			text += fmt.Sprintf(" (± %s)", unit.Percent(2**b.SE))
		}
		l.Add(doc.Name(b.Series), ", "+b.Branch+": ", fields, fmt.Sprintf(" at night %d, %s: ", b.Night, b.After.Time.Format(time.DateOnly)),
			doc.Text(text).With(map[bool]doc.Tone{true: doc.Warn}[b.Warn]),
			", cannot be separated from that night's commits")
	}
	return doc.Part(doc.H(2, "borders", "Other environments"), l)
}

// noiseList lists the noise of each series, and its habits.
func noiseList(series []*Checked) doc.List {
	var l doc.List
	enough := lists.Filter(series, func(c *Checked) bool { return c.Enough })
	for _, c := range enough[:min(len(enough), listedNoise)] {
		spans := doc.Spans(doc.Name(c.Of()), ", "+c.Branch+": "+noiseText(&c.Noise))
		if text := fewText(c); text != "" {
			spans = append(spans, doc.Text("; "+text).With(map[bool]doc.Tone{true: doc.Warn}[c.Blind]))
		}
		if text := habits(c); text != "" {
			spans = append(spans, doc.Text("; "+text).With(doc.Warn))
		}
		l.Add(spans)
	}
	if len(enough) > listedNoise {
		l.Add(doc.Text("and more series: --format json has all of them").With(doc.Muted))
	}
	return l
}

// noiseText formats noise: noise 0.8 %, correlation 0.6, 3 machines ± 1.5 %.
func noiseText(n *change.Noise) string {
	text := fmt.Sprintf("noise %s, correlation %.1f", unit.Percent(n.SD), n.Correlation)
	if n.Machines > 1 {
		text += fmt.Sprintf(", %d machines", n.Machines)
		if n.MachineSD > 0 {
			text += " ± " + unit.Percent(n.MachineSD)
		} else {
			text += " alike"
		}
	}
	if n.Odd > 0.01 {
		text += ", " + unit.Percent(n.Odd) + " odd nights"
	}
	if n.Longest > 0 {
		text += fmt.Sprintf(", up to %d nights off at a time", n.Longest)
	}
	if n.Week > 0 {
		text += ", " + unit.Percent(math.Expm1(n.Week)) + " between days of the week"
	}
	return text
}

// fewText says what the few nights of a series can show; empty: it has many.
func fewText(c *Checked) string {
	if c.Sees == nil {
		return ""
	}
	seen := fmt.Sprintf("%d nights at %s would show", change.SlowNights, unit.Change(*c.Sees))
	if !c.Blind {
		return seen
	}
	return fmt.Sprintf("%d nights are too few to see %s, ", c.Nights, unit.Change(math.Copysign(mostUnseen, *c.Sees))) + seen
}

// habits describes what a series does besides noise and changes; empty: nothing.
func habits(c *Checked) string {
	var parts []string
	for _, x := range c.Flips {
		parts = append(parts, fmt.Sprintf("flips between two levels %s apart, %s since %s", unit.Percent(math.Expm1(x.High-x.Low)),
			wording.Count(x.Times, "time"), c.Series.Nights[x.From].Time.Format(time.DateOnly)))
	}
	if x := c.Creep; x != nil {
		parts = append(parts, fmt.Sprintf("creeps by %s a year (± %s) since %s", unit.Change(math.Expm1(x.PerYear)), unit.Percent(2*x.SE),
			c.Series.Nights[x.From].Time.Format(time.DateOnly)))
	}
	if c.Odd != "" {
		parts = append(parts, "unlike any known noise: "+c.Odd)
	}
	return strings.Join(parts, "; ")
}

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
	h := doc.Heading{Level: 2, ID: "change-" + f.After.Commit,
		Spans: doc.Spans(doc.Text(unit.Change(f.Ratio-1)+" ").With(tone), doc.Name(f.Of()), ", "+state)}
	var fields doc.Fields
	fields.Add("Commits", doc.Code(Short(f.Before.Commit)), " → ", doc.Code(Short(f.After.Commit)),
		", "+f.After.Time.Format(time.DateOnly)+", found "+f.FoundAt.Format(time.DateOnly))
	if f.Pinned != nil {
		fields.Add("Level", "ratio to ", doc.Code(Short(*f.Pinned)), fmt.Sprintf(", %.4f → %.4f, p %.1g", f.LevelBefore, f.LevelAfter, f.P))
	} else {
		fields.Add("Level", fmt.Sprintf("%s → %s, p %.1g", unit.Format(f.LevelBefore, f.Unit), unit.Format(f.LevelAfter, f.Unit), f.P))
	}
	for i := range f.Rows {
		fields.Add(first("Cause", i), unit.Delta(f.Rows[i].Delta, report.Nanoseconds)+" "+render.Visible(f.Rows[i].Text()))
	}
	if len(f.Rows) == 0 && f.Cause != "" {
		fields.Add("Cause", render.Visible(f.Cause))
	}
	if f.Bisect != "" && f.Open {
		fields.Add("Find it", doc.Code(f.Bisect+` -- "$PWD/capture.sh"`))
	}
	for i, c := range f.Commits {
		if i == listedCauses {
			fields.Add("", fmt.Sprintf("and %d more", len(f.Commits)-i))
			break
		}
		fields.Add(first("Between", i), doc.Code(Short(c.SHA)), " ", doc.Name(c.Subject))
	}
	if len(f.Owners) > 0 {
		fields.Add("Ask", doc.Name(strings.Join(f.Owners, ", ")))
	}
	if f.Ack != nil {
		fields.Add("Accepted", doc.Name(f.Ack.Reason), ", up to "+f.Ack.Expires)
	}
	return []doc.Block{h, fields}
}

// first names the first row of several, and leaves the others without a name.
func first(name string, i int) string {
	if i > 0 {
		return ""
	}
	return name
}

// Page returns the history as one page: each change with its cause over the nights of its series, then other series.
// link returns the address of the report of a run, empty for no link; nil: no links.
func (c *Checks) Page(link func(r *Run) string) doc.Document {
	d := checkHead(c)
	drawn := slices.DeleteFunc(slices.Clone(c.Series), func(x *Checked) bool { return x.Nights == 0 })
	lists.Sort(drawn, func(a, b *Checked) int { return newest(b).Compare(newest(a)) })
	if n := len(drawn) - drawnSeries; n > 0 {
		d.Add(doc.P(doc.Text(fmt.Sprintf("The %d series with the newest nights are drawn, %d older ones are not: --branch and --workload choose.", drawnSeries, n)).With(doc.Muted)))
		drawn = drawn[:drawnSeries]
	}
	shown := map[*Checked]bool{} // series that are drawn with one of their changes
	for _, f := range c.Changes {
		d.Add(changeBlocks(f)...)
		if k := slices.Index(drawn, f.series); k >= 0 && !shown[f.series] {
			shown[f.series] = true
			d.Add(chart(f.series, "series-"+strconv.Itoa(k+1), link))
		}
	}
	d.Add(borderBlocks(c)...)
	for i, x := range drawn {
		d.Add(seriesBlocks(x, c, shown[x], i+1, link)...)
	}
	d.Add(doc.P(doc.Text("How a change is found, and how often that is wrong: ").With(doc.Muted), doc.Code("explain doc change-points")))
	return d
}

func newest(c *Checked) time.Time { return c.Series.Nights[len(c.Series.Nights)-1].Time }

// seriesBlocks returns the blocks of a page about one series.
func seriesBlocks(x *Checked, c *Checks, shown bool, n int, link func(r *Run) string) []doc.Block {
	id := "series-" + strconv.Itoa(n)
	title := doc.Spans(doc.Name(x.Of()), ", "+x.Branch)
	if x.Repository != "" {
		title = append(title, doc.Text(", "), doc.Name(x.Repository))
	}
	blocks := []doc.Block{doc.Heading{Level: 2, ID: "of-" + id, Spans: title}}
	said := []string{noiseText(&x.Noise), fewText(x), habits(x)}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	blocks = append(blocks, doc.P(c.workloads[x.Workload].Spans()), doc.P(strings.Join(said, "; ")))
	if !shown {
		blocks = append(blocks, chart(x, id, link))
	}
	return append(blocks, nightTable(&x.Series, link), doc.Fold("", "Environments", epochList(&x.Series)))
}

// Spans are the fields of a workload or of an environment with their values.
func (w Workload) Spans() []doc.Span {
	return doc.Joined(", ", slices.Sorted(maps.Keys(w)), func(k string) any { return doc.Spans(k+" ", doc.Name(w[k])) })
}

// chart draws the newest nights: grey dots, red from a change for the worse on; the level as steps, with its noise; the
// changes with commit and date, and the borders of environments.
func chart(x *Checked, id string, link func(r *Run) string) doc.Chart {
	nights := x.Series.Nights
	from := max(0, len(nights)-drawnNights)
	d := doc.Chart{ID: id, Title: x.Of(), Kind: "trend", Unit: x.Unit, XTitle: "Night", Noise: x.Noise.SD}
	if x.Pinned != nil {
		d.Title, d.Unit = x.Of()+", ratio to "+Short(*x.Pinned), ""
	}
	points, level := doc.Series{Name: "night", Style: "points"}, doc.Series{Name: "level", Style: "level"}
	borders, changes := doc.Series{Name: "environment", Style: "border"}, doc.Series{Name: "change", Style: "change"}
	tone := doc.Plain
	at := func(s *doc.Series, i int, words string) {
		s.Add(strconv.Itoa(i-from+1), math.Exp(x.told.Levels[i]))
		s.Words = append(s.Words, words)
	}
	for i := from; i < len(nights); i++ {
		n := &nights[i]
		day := n.Time.Format(time.DateOnly)
		if f := lists.Find(x.told.Changes, func(f *change.Change) bool { return f.At == i }); f != nil {
			tone = map[bool]doc.Tone{true: doc.Bad, false: doc.Good}[x.Worse(f.Shift)]
			at(&changes, i, unit.Change(math.Expm1(f.Shift))+" at "+Short(n.Commit)+", "+day)
		}
		if i > 0 && !x.comparable(i, i-1) {
			tone = doc.Plain
			at(&borders, i, moved(x.borders, i))
		}
		value := unit.Format(n.followed(), d.Unit)
		points.Add(day, n.followed())
		points.Words, points.Tones = append(points.Words, day+", "+Short(n.Commit)+": "+value), append(points.Tones, tone)
		address := ""
		if link != nil && len(n.Runs) > 0 {
			address = link(&n.Runs[0])
		}
		points.Links = append(points.Links, address)
		level.Add(day, math.Exp(x.told.Levels[i]))
	}
	d.Series = slices.DeleteFunc([]doc.Series{points, level, borders, changes}, func(s doc.Series) bool { return len(s.Values) == 0 })
	return d
}

// moved describes which fields of the environment changed at a night.
func moved(borders []*Border, night int) string {
	for _, b := range borders {
		if b.Night == night && len(b.Fields) > 0 {
			return strings.Join(lists.Map(b.Fields, func(f Moved) string {
				return f.Name + " " + cmp.Or(f.Before, "unknown") + " → " + cmp.Or(f.After, "unknown")
			}), ", ")
		}
	}
	return "another environment"
}

// nightTable lists the newest nights, with links to their reports.
func nightTable(x *Series, link func(r *Run) string) doc.Block {
	t := doc.Table{ID: "nights", Columns: doc.Cols("Time", "Commit", ">Value", ">Ratio to the reference", ">Captures",
		"Report")}
	for i := len(x.Nights) - 1; i >= max(0, len(x.Nights)-listedNights); i-- {
		n := &x.Nights[i]
		ratio := ""
		if n.Ratio != nil {
			ratio = fmt.Sprintf("%.4f", *n.Ratio)
		}
		var links []doc.Span
		for k := range n.Runs {
			if link != nil {
				links = append(links, doc.Link(strconv.Itoa(k+1), link(&n.Runs[k])))
			}
		}
		t.Row(n.Time.Format("2006-01-02 15:04"), doc.Code(Short(n.Commit)), unit.Format(n.Value, x.Unit), ratio,
			strconv.Itoa(len(n.Runs)), doc.Joined(" ", links, func(s doc.Span) any { return s }))
	}
	return doc.Fold("", "The newest "+wording.Count(len(t.Rows), "night"), t)
}

// epochList lists the environments of a series: when each was first used, and what it is.
func epochList(x *Series) doc.List {
	var l doc.List
	for _, nights := range lists.Groups(x.Nights, func(n Night) string { return n.Epoch }) {
		n := nights[0]
		l.Add("from "+n.Time.Format(time.DateOnly)+" ", doc.Code(n.Epoch), ": ", n.about.Spans())
	}
	return l
}

// Sparkline draws values as one line of text, a character for each. Values within 2 % of each other look alike.
func Sparkline(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	if room := 0.02 * math.Abs(high); high-low < room {
		low, high = low-(room-(high-low))/2, high+(room-(high-low))/2
	}
	steps := []rune("▁▂▃▄▅▆▇█")
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

// Line formats the newest nights of a series, at most n, as one line of text.
func (s *Series) Line(n int) string {
	nights := s.Nights[max(0, len(s.Nights)-n):]
	if len(nights) == 0 {
		return ""
	}
	values := followed(nights)
	first, last := values[0], values[len(values)-1]
	ends := unit.Format(nights[0].Value, s.Unit) + " → " + unit.Format(nights[len(nights)-1].Value, s.Unit)
	if s.Pinned != nil {
		ends = fmt.Sprintf("%.3f → %.3f of %s", first, last, Short(*s.Pinned))
	}
	return fmt.Sprintf("%s %s (%s, %s)", Sparkline(values), ends, unit.Change(last/first-1), wording.Count(len(nights), "night"))
}
