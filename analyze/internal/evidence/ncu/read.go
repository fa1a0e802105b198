package ncu

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// maxLaunches bounds what is held in memory, over all files.
const maxLaunches = 1_000_000

// oddities counts the anomalies that limit trust in the numbers of a file.
type oddities struct {
	units      map[Field]int64 // values of a unit that does not fit
	counters   int64           // the same, of counters of operations
	against    int64           // numbers in another notation than most
	broken     int64           // rows that end in the middle
	long       int64           // lines that were cut
	errors     int64           // lines in which ncu reports an error
	permission bool            // ncu was not allowed to read the counters
	noKernels  bool            // ncu met no kernel that it was asked for
	noUnits    bool            // a raw page without its units row
	summary    int64           // rows of a --print-summary page
	tooMany    int64           // launches beyond the bound
	damaged    error           // why reading stopped early
}

// reader goes through the rows of one file.
type reader struct {
	in     *file.Input
	tally  *file.Tally
	odd    *oddities
	header *header
	queue  []string
	lines  *file.Lines
	fields []string
}

// row is called for each row of a page that is not its units. Each page has a header of its own.
type row func(h *header, fields []string)

// each reads the file once. Every line that is not a row of a page is counted.
func (r *reader) each(ctx context.Context, f row) error {
	src, err := r.in.Open()
	if err != nil {
		return err
	}
	defer src.Close()
	r.lines = file.NewLines(src)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, ok := r.take()
		if !ok {
			break
		}
		r.line(line, f)
	}
	r.odd.damaged = r.lines.Err
	return nil
}

// take is the next line without its line break; false at the end or at an error.
func (r *reader) take() (string, bool) {
	if n := len(r.queue); n > 0 {
		line := r.queue[0]
		r.queue = r.queue[1:]
		return line, true
	}
	line, cut, ok := r.lines.Next()
	if cut {
		r.odd.long++
	}
	return valid(line), ok
}

func (r *reader) line(line string, f row) {
	trimmed := strings.TrimSpace(line)
	if trimmed == "" {
		return
	}
	r.tally.Records++
	if strings.HasPrefix(trimmed, "==") {
		r.message(trimmed)
		return
	}
	if h := parseHeader(trimmed); h != nil {
		r.header = h
		r.tally.Known++
		return
	}
	if r.header == nil {
		r.tally.Unknown++ // output of the program itself
		return
	}
	start := trimmed[0]
	if line[0] == r.header.separator {
		start = line[0] // a tab, which an empty first column leaves
	}
	if !r.header.mayStart(start) {
		r.tally.Unknown++
		return
	}
	fields, open := file.Split(line, r.header.separator, r.fields)
	if open {
		fields, open = r.join(line)
	}
	r.fields = fields
	switch h := r.header; {
	case open:
		r.odd.broken++
		r.tally.Unknown++
	case h.isUnits(fields):
		h.readUnits(fields)
		r.tally.Known++
	case h.layout == summary:
		r.odd.summary++
		r.tally.Unknown++
	case h.layout == raw && !r.lines.Ends && len(r.queue) == 0 &&
		(len(fields) < len(h.columns) || h.quoted && !strings.HasSuffix(trimmed, `"`)):
		r.odd.broken++ // the last line of a file that was cut: its last number may be cut too
		r.tally.Unknown++
	default:
		f(h, fields)
	}
}

// join completes a record with line breaks in quotes. If no end is found, the first line is dropped, and the others are
// read one by one.
func (r *reader) join(first string) (fields []string, open bool) {
	var more []string
	var record strings.Builder
	record.WriteString(first)
	quotes := strings.Count(first, `"`)
	for len(more) < maxJoin && record.Len() < file.MaxLine {
		line, ok := r.take()
		if !ok {
			break
		}
		more = append(more, line)
		if strings.HasPrefix(line, "==") || startsRecord(line, r.header.separator) || parseHeader(line) != nil {
			break
		}
		record.WriteString("\n" + line)
		n := strings.Count(line, `"`)
		if quotes += n; n == 0 || quotes%2 != 0 {
			continue
		}
		if fields, open = file.Split(record.String(), r.header.separator, r.fields); !open {
			r.tally.Records += int64(len(more))
			r.tally.Known += int64(len(more))
			return fields, false
		}
	}
	r.queue = append(more, r.queue...)
	return nil, true
}

// startsRecord reports whether a line begins with a number in quotes, as every record does.
func startsRecord(line string, separator byte) bool {
	rest, ok := strings.CutPrefix(line, `"`)
	digits := strings.TrimLeft(rest, "0123456789")
	return ok && len(digits) < len(rest) && len(digits) > 1 && digits[0] == '"' && digits[1] == separator
}

// message is a line in which ncu speaks: ==PROF==, ==WARNING==, ==ERROR==.
func (r *reader) message(line string) {
	r.tally.Known++
	if strings.HasPrefix(line, "==ERROR==") {
		r.odd.errors++
	}
	r.odd.permission = r.odd.permission || strings.Contains(line, "ERR_NVGPUCTRPERM")
	r.odd.noKernels = r.odd.noKernels || strings.Contains(line, "No kernels were profiled")
}

// styleOf is how the file writes its numbers.
func styleOf(ctx context.Context, in *file.Input, odd *oddities) (style, error) {
	r := reader{in: in, tally: &file.Tally{}, odd: &oddities{}}
	var v votes
	err := r.each(ctx, func(h *header, fields []string) {
		if h.layout == details {
			metric := cell(fields, h.metric)
			v.add(cell(fields, h.value), isWhole(metric, cell(fields, h.unit)))
			return
		}
		for i, c := range h.columns {
			if isMetric(c) {
				v.add(cell(fields, i), false)
			}
		}
	})
	s, against := v.style()
	odd.against = against
	return s, err
}

// isWhole reports whether a metric is a count, in a unit that is not scaled.
func isWhole(metric, unit string) bool {
	return strings.HasSuffix(metric, ".sum") && (unit == "byte" || unit == "inst")
}

// parser turns the rows of a file into launches.
type parser struct {
	in       *file.Input
	style    style
	odd      *oddities
	folder   string
	room     int // launches that may still be added
	launches []*Launch
	page     *header         // that the row is on
	at       map[key]*Launch // launches of this page, if it is a details page
	gpus     map[int]*Device
	layout   map[layout]bool
}

// row reads a row of the file into p.launches.
func (p *parser) row(h *header, fields []string) {
	t := p.in.Tally
	if p.page != h {
		p.page, p.at = h, map[key]*Launch{}
		p.layout[h.layout] = true
	}
	id, err := strconv.ParseInt(strings.NewReplacer(",", "", ".", "").Replace(ungrouped(cell(fields, h.id))), 10, 64)
	if err != nil && h.id >= 0 || cell(fields, h.kernel) == "" {
		t.Unknown++
		return
	}
	read := p.long
	if h.layout == raw {
		read = p.wide
	}
	t.Took(read(h, fields, id))
}

// wide reads a row of a raw page: a launch with all its metrics.
func (p *parser) wide(h *header, fields []string, id int64) bool {
	b := p.launch(h, fields, id)
	if b == nil {
		return false
	}
	p.odd.noUnits = p.odd.noUnits || !h.unitsRead && !h.unitsSaid
	taken := false
	for _, i := range h.used {
		c := h.columns[i]
		if text := cell(fields, i); text != "" {
			taken = p.set(b, c, h.units[i], text) || taken
		}
		switch c {
		case "launch__grid_dim_x":
			b.Grid = p.triple(b.Grid, fields, i)
		case "launch__block_dim_x":
			b.Block = p.triple(b.Block, fields, i)
		}
	}
	if d, err := strconv.Atoi(cell(fields, h.device)); err == nil && d >= 0 && d < 1<<16 {
		b.Device = d
		if p.gpus[d] == nil {
			p.gpus[d] = &Device{ID: d, CC: b.CC}
			p.gpus[d].describe(h, fields, p.style)
		}
		b.CC = cmp.Or(b.CC, p.gpus[d].CC)
	}
	return taken
}

// maxName is the longest name of a metric that is looked at.
const maxName = 200

// triple is a grid or block from the three columns that begin at i, if the page has no column for the whole.
func (p *parser) triple(have string, fields []string, i int) string {
	if have != "" {
		return have
	}
	parts := make([]string, 3)
	for k := range parts {
		n, ok := p.style.parse(cell(fields, i+k), scale{})
		if !ok || n.value < 1 || n.value > 1<<31 {
			return ""
		}
		parts[k] = strconv.FormatInt(int64(n.value), 10)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// long reads a row of a details page: one metric of a launch, or the text of a rule.
func (p *parser) long(h *header, fields []string, id int64) bool {
	metric := cell(fields, h.metric)
	if metric == "" || len(metric) > maxName {
		return false
	}
	b := p.at[key{id, h.process(fields), cell(fields, h.kernel)}]
	what := cell(fields, h.section) + "\n" + metric
	if h.id < 0 && b != nil && b.seen[what] { // without an ID, a repeated metric begins another launch
		b = nil
	}
	if b == nil {
		if b = p.launch(h, fields, id); b == nil {
			return false
		}
		p.at[key{id, b.PID, b.name}] = b
	}
	if h.id < 0 {
		b.seen[what] = true
	}
	u := parseUnit(cell(fields, h.unit))
	taken := false
	for _, name := range h.names(fields, metric) {
		taken = p.set(b, name, u, cell(fields, h.value)) || taken
	}
	return taken
}

// names are the names under which a label is looked up: in a roofline's section the frequencies differ from those of
// Speed of Light.
func (h *header) names(fields []string, metric string) []string {
	if !strings.HasSuffix(metric, "Frequency") || !strings.Contains(cell(fields, h.section), "Roofline") {
		return []string{metric}
	}
	switch item := cell(fields, h.item); {
	case strings.Contains(item, "Achieved"):
		return []string{rooflineAchieved + metric}
	case item != "":
		return []string{rooflinePeak + metric}
	}
	return []string{rooflineAchieved + metric, rooflinePeak + metric}
}

// launch adds a launch; nil if there are too many.
func (p *parser) launch(h *header, fields []string, id int64) *Launch {
	if p.room <= 0 {
		p.odd.tooMany++
		return nil
	}
	p.room--
	b := newLaunch(h, fields, id, p.folder)
	p.launches = append(p.launches, b)
	return b
}

func (p *parser) set(b *Launch, metric string, u scale, text string) bool {
	taken, bad := b.set(metric, u, text, p.style)
	if bad {
		if names := named[metric]; len(names) > 0 {
			p.odd.units[names[0].field]++
		} else {
			p.odd.counters++
		}
	}
	return taken
}
