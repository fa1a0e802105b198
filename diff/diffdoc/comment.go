package diffdoc

import (
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
)

// CommentOptions are the options of [Comment]. Strings may hold anything: text that is not explain's own is escaped
// like the names of a capture.
type CommentOptions struct {
	Title string // names this comment if a pull request has several; may be empty
	// facts to know before reading the numbers: a first run, another policy at the base, …
	Notes      [][]doc.Span
	Provenance Provenance
	// AcceptLabel is the label that accepts a failure, and Reproduce the command that compares again. Empty: not shown.
	AcceptLabel, Reproduce string
	Today                  time.Time // suggested waivers end one month later; zero: they have no date
}

// Values of Provenance.Policy if no file was given.
const (
	DefaultRules = "default rules"
	FlagRules    = "rules of --fail-on"
)

// Provenance says where a comparison comes from. Empty fields are left out.
type Provenance struct {
	BaseSHA, HeadSHA string // commits
	Baseline         string // where the base's captures were found
	Hardware         string // of the head: 2 × NVIDIA H100
	Policy           string // which policy judged
	RunURL           string // of the workflow run, http or https
	BaseRunURL       string // of the run that measured the base
	PageURL          string // of diff.html, or of the artifact page that lists it
	FailedJob        string // job that left nothing to judge; FailedURL is its log
	FailedURL        string
	Artifact         string // artifact with the whole report
}

// Comment returns a comparison as GitHub-flavoured markdown of at most limit bytes: a first screen with verdict,
// counts, cause, the judged numbers and what to do next, and the rest folded as on the comparison's page. Tables have
// at most commentRows rows, and the number of others in their place. If it does not fit, it drops in this order: more
// rows; the folded parts; everything except the verdict. It is never cut inside a row or a folded part.
func Comment(c *comparison.Comparison, o CommentOptions, limit int) string {
	p := commentPage{c: c, o: &o}
	first, folded := p.screen()
	notes := doc.Fold("", "Notes", append(folded, obstructions(c)...)...)
	return fit(limit, p.document(first, []doc.Block{notes}, everyNumber(c)), p.document(first, leftOut()),
		doc.Document{doc.P(symbols[c.Verdict], verdictWord(c.Verdict))})
}

// ErrorComment says in at most limit bytes that nothing was judged, and why: text may hold anything.
func ErrorComment(v comparison.Verdict, text string, o CommentOptions, limit int) string {
	o.Provenance.PageURL = "" // there is no page, because no comparison was made
	p := commentPage{o: &o}
	title := p.heading(v, doc.Spans(verdictWord(v), " nothing was judged"))
	d := doc.Document{title}
	if f := &o.Provenance; f.FailedURL != "" {
		d.Add(doc.P("Measuring failed: ", doc.Link("log of the job "+f.FailedJob, f.FailedURL), "."))
	}
	d.Add(doc.P(clipTo(text, causeText)), doc.P(p.provenance()))
	return fit(limit, d, doc.Document{doc.P(title.Spans)})
}

// fit renders the first of several ever shorter documents that fits, if need be with fewer rows in every table and
// list, so that the longest ones lose rows first. If none fits, it returns the last one.
func fit(limit int, pages ...doc.Document) (text string) {
	for _, page := range pages {
		for rows := commentRows; rows >= leastRows; rows-- {
			if text = markdownText(cutRows(page, rows)); len(text) <= limit {
				return text
			}
		}
	}
	return text
}

// leastRows is the smallest number of rows worth showing: a page that only fits with fewer drops its folded parts
// instead.
const leastRows = 3

func markdownText(d doc.Document) string {
	var b strings.Builder
	_ = render.Markdown(&b, d, render.MarkdownOptions{Compact: true}) // a strings.Builder returns no errors
	return b.String()
}

// cutRows keeps the first rows of every table and list, and adds how many it left out.
func cutRows(blocks []doc.Block, rows int) []doc.Block {
	out := slices.Clone(blocks)
	for i, b := range blocks {
		switch b := b.(type) {
		case doc.Table:
			if n := len(b.Rows) - rows; n > 0 {
				b.Rows = b.Rows[:rows]
				b.Foot = append(slices.Clip(b.Foot), doc.Row(leftOutText(n, "row")))
			}
			out[i] = b
		case doc.List:
			if n := len(b.Items) - rows; n > 0 {
				b.Items = append(b.Items[:rows:rows], doc.Item{Spans: doc.Spans(leftOutText(n, "line"))})
			}
			out[i] = b
		case doc.Details:
			b.Blocks = cutRows(b.Blocks, rows)
			out[i] = b
		case doc.Note:
			b.Blocks = cutRows(b.Blocks, rows)
			out[i] = b
		}
	}
	return out
}

func leftOutText(n int, noun string) doc.Span {
	return doc.Text(wording.Count(n, noun) + " left out, full report in the artifact").With(doc.Muted)
}

// commentPage builds the documents of one comment.
type commentPage struct {
	c *comparison.Comparison
	o *CommentOptions
}

// document is the comment with the given parts between its header and its footer.
func (p commentPage) document(parts ...[]doc.Block) (d doc.Document) {
	d.Add(p.title())
	d.Add(slices.Concat(parts...)...)
	d.Add(p.footer()...)
	return d
}

// obstructions say what limits trust in the numbers or, if they mean nothing side by side, what is in the way.
func obstructions(c *comparison.Comparison) []doc.Block {
	if shows(c) {
		return reasons(c)
	}
	return doc.Some(obstacles(c))
}

func leftOut() []doc.Block {
	return []doc.Block{
		doc.P(doc.Text("Details left out for their length, full report in the artifact.").With(doc.Muted))}
}

// Bounds of a comment.
const (
	commentLevel  = 3   // of its title; the parts are one level below
	causeText     = 700 // characters of the cause
	commentRows   = 12  // most rows of a table
	commentLabels = 10  // that accepted a failure
)

var symbols = map[comparison.Verdict]string{comparison.Pass: "✅ ", comparison.Warn: "⚠ ", comparison.Inconclusive: "❔ ",
	comparison.Fail: "❌ ", comparison.Error: "🛑 "}

// title is the verdict with the size of the change that decided it: "FAIL +13.8 % slower".
func (p commentPage) title() doc.Block {
	spans := verdictLine(p.c)
	if a := &p.c.Answer; a.Sides() != "" && a.Size() != "" && strings.HasSuffix(spans[len(spans)-1].Text, a.Size()) {
		spans = append(spans, doc.Text(", "+sidesText(a)))
	}
	return p.heading(p.c.Verdict, append(spans, p.acceptedBy()...))
}

// heading begins with the sign of the verdict and the comment's own title.
func (p commentPage) heading(v comparison.Verdict, spans []doc.Span) doc.Heading {
	if p.o.Title != "" {
		spans = doc.Spans(doc.Name(p.o.Title), ": ", spans)
	}
	return doc.Heading{Level: commentLevel, Spans: doc.Spans(symbols[v], spans)}
}

// notes are the facts to know before reading the numbers: what accepted a failure, and the caller's notes.
func (p commentPage) notes() []doc.Block {
	n := doc.Note{Kind: doc.Info}
	if p.c != nil {
		for _, o := range p.c.Overrides[:min(len(p.c.Overrides), commentLabels)] {
			spans := doc.Spans("Accepted: the label ", doc.Name(o.Label), " turns "+string(o.From)+" into "+string(o.To))
			if o.By != "" {
				spans = doc.Spans(spans, ", set by ", doc.Name(o.By))
			}
			n.Blocks = append(n.Blocks, doc.P(spans, "."))
		}
	}
	for _, spans := range p.o.Notes {
		n.Blocks = append(n.Blocks, doc.P(spans))
	}
	return doc.Some(n)
}

// footer says how much was checked, and states the provenance of the numbers.
func (p commentPage) footer() []doc.Block {
	spans := doc.Spans(sides(p.c), " · ")
	if from := p.provenance(); len(from) > 0 {
		spans = doc.Spans(spans, from, " · ")
	}
	return []doc.Block{doc.P(checkedText(p.c)), doc.P(spans, "explain ", doc.Name(p.c.Tool.Version))}
}

// provenance names the known parts of the comparison's provenance.
func (p commentPage) provenance() []doc.Span {
	var list [][]doc.Span
	f := &p.o.Provenance
	switch {
	case f.BaseSHA != "" && f.HeadSHA != "":
		list = append(list, doc.Spans(doc.Code(shortSHA(f.BaseSHA)), " → ", doc.Code(shortSHA(f.HeadSHA))))
	case f.HeadSHA != "":
		list = append(list, doc.Spans(doc.Code(shortSHA(f.HeadSHA))))
	}
	for _, part := range []struct{ what, name string }{
		{"baseline: ", f.Baseline}, {"policy: ", f.Policy}, {"", f.Hardware}, {"artifact ", f.Artifact},
	} {
		if part.name != "" {
			list = append(list, doc.Spans(part.what, doc.Name(part.name)))
		}
	}
	page := "diff.html"
	if strings.HasSuffix(f.PageURL, "#artifacts") {
		page = "diff.html in the artifacts"
	}
	for _, link := range []struct{ text, url string }{
		{page, f.PageURL}, {"run", f.RunURL}, {"run of the base", f.BaseRunURL},
	} {
		if strings.HasPrefix(link.url, "https://") || strings.HasPrefix(link.url, "http://") {
			list = append(list, doc.Spans(doc.Link(link.text, link.url)))
		}
	}
	return doc.Joined(" · ", list, func(part []doc.Span) any { return part })
}

// shortSHA shortens a commit as GitHub does.
func shortSHA(s string) string { return s[:min(len(s), 7)] }
