package merge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

// Options of a merged report.
type Options struct {
	Version string // of the program
	Rules   *Rules // of the sections whose numbers are merged
	Top     int    // rows of ranked tables; 0: 30
	// Rank finds ranks that are otherwise unknown in the names of captures: its first group is the number. Nil: none.
	Rank *regexp.Regexp
	// Roles are what ranks do, by the names of captures; the first that matches counts.
	Roles []Role
}

// Role is a name for the captures whose names match.
type Role struct {
	Name string
	Of   *regexp.Regexp
}

const defaultTop = 30

// RunError is about captures that are not of one run: they cannot be merged.
type RunError struct{ Text string }

func (e *RunError) Error() string { return e.Text }

// Report makes the report of all captures of the sources. It is the same whichever files hold the captures, in any
// order.
func Report(ctx context.Context, sources []Source, opt Options) (*report.Report, error) {
	if opt.Top == 0 {
		opt.Top = defaultTop
	}
	l, err := index(ctx, sources)
	if err != nil {
		return nil, err
	}
	f := newFold(opt)
	f.sampled = l.sampled
	err = l.each(ctx, func(s *stored) error {
		body := s.body
		if f.sampled {
			body = s.sample
		}
		c, err := decode(s.source, s.head, body)
		if err != nil {
			return err
		}
		steps := c.Report
		if f.sampled && s.body != nil { // the slowest captures are whole, for metrics of single steps
			whole, err := decode(s.source, s.head, s.body)
			if err != nil {
				return err
			}
			steps = whole.Report
		}
		f.add(c, steps)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(f.captures) == 0 {
		return nil, &RunError{"no capture to merge: the partials are empty"}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	r := f.report()
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("explain made a report that breaks its own contract, please report it: %w", err)
	}
	return r, nil
}

// captureFold is what remains of a capture after it was added.
type captureFold struct {
	Head
	identity report.Capture
	window   report.Window
	environ  report.Environment
	tracks   []*ranks.Track
	role     string
	own      Own
	unit     report.Unit // without series
	units    []report.UnitPoint
}

// metricFold accumulates one metric.
type metricFold struct {
	m        report.Metric // of the first capture that has it
	rule     report.Merge
	whole    int64
	rest     float64 // sum of values that are not integers
	above    float64 // numerator of a ratio
	below    float64
	n        int64
	captures int
	of       deviceKey // its GPU, if it is carried
}

// statusFold counts what captures state about a section, and keeps the first reason.
type statusFold struct {
	n   map[report.Status]int
	why string
}

type fold struct {
	opt      Options
	sampled  bool // captures are samples: the run has more than MaxExact ranks
	captures []*captureFold
	reports  int // captures of which only the report is available
	metrics  map[string]*metricFold
	order    []string
	seen     map[string][]report.Labels // by id of a metric whose events are counted: labels seen
	counts   *countsFold
	tables   map[string]*tableFold
	sections []report.Section // in the order of the report, without tables
	status   map[string]*statusFold
	rows     map[string]int // captures that have rows of a table
	tableIDs map[string][]string
	inputs   []report.TableCount
	bytes    int64
	devices  devices
	named    map[int64]bool // GPUs beyond maxDevices that have metrics of their own
	units    unitsFold
	warnings []report.Warning
}

func newFold(opt Options) *fold {
	return &fold{opt: opt, metrics: map[string]*metricFold{}, seen: map[string][]report.Labels{}, counts: newCountsFold(), tables: map[string]*tableFold{},
		tableIDs: map[string][]string{}, status: map[string]*statusFold{}, rows: map[string]int{}, units: unitsFold{best: map[string]*bestUnit{}}}
}

// add adds a capture. steps is the report with the numbers of its steps.
func (f *fold) add(c *Capture, steps *report.Report) {
	r, at := c.Report, len(f.captures)
	k := &captureFold{Head: c.Head, identity: r.Capture, window: r.Window, environ: r.Environment, tracks: c.Tracks,
		own: c.Own, unit: r.Unit}
	k.unit.Series = nil
	if s := r.Unit.Series; s != nil {
		k.units, _ = s.Decode() // validated
	}
	f.captures = append(f.captures, k)
	if c.From != "" {
		f.reports++
		f.counts.missing = true
	}
	for _, role := range f.opt.Roles {
		if role.Of.MatchString(c.Name) {
			k.role = role.Name
			break
		}
	}
	f.nameRanks(k)
	for _, g := range r.Environment.GPUs {
		f.devices.see(deviceKey{at, int64(g.Device)})
	}
	f.counts.add(c.Counts)
	f.inputTables(r)
	f.bytes += r.Trace.Bytes
	for i := range r.Metrics {
		f.metric(at, r, &r.Metrics[i])
	}
	f.units.add(at, steps, k.own.Steps, f.opt.Rules)
	for i := range r.Sections {
		f.section(at, &r.Sections[i])
	}
	for _, w := range r.Warnings {
		f.warn(at, w)
	}
}

// nameRanks reads ranks that are otherwise unknown from the names of captures, if the user gave a pattern.
func (f *fold) nameRanks(k *captureFold) {
	if f.opt.Rank == nil {
		return
	}
	m := f.opt.Rank.FindStringSubmatch(k.Name)
	if len(m) < 2 {
		return
	}
	var rank int64
	if _, err := fmt.Sscanf(m[1], "%d", &rank); err != nil || rank < 0 || rank > 1<<20 {
		return
	}
	processes := map[int64]bool{}
	for _, t := range k.tracks {
		processes[t.PID] = true
	}
	if len(processes) > 1 {
		return // the file holds several ranks
	}
	for _, t := range k.tracks {
		if t.Rank < 0 {
			t.Rank, t.From = rank, "name"
		}
	}
}

func (f *fold) inputTables(r *report.Report) {
	for _, t := range r.Trace.Tables {
		at := slices.IndexFunc(f.inputs, func(x report.TableCount) bool { return x.Name == t.Name })
		if at < 0 {
			at = len(f.inputs)
			f.inputs = append(f.inputs, report.TableCount{Name: t.Name})
		}
		f.inputs[at].Rows += t.Rows
		f.inputs[at].Skipped += t.Skipped
		if t.Rows > 0 {
			f.rows[t.Name]++
		}
	}
}

func (f *fold) metric(at int, r *report.Report, m *report.Metric) {
	rule := f.opt.Rules.of(m)
	if m.Value == nil || rule.How == report.HowLeave || rule.How == report.HowStep {
		return
	}
	key := report.MetricKey(m.ID, m.Labels)
	var of deviceKey
	if rule.How == report.HowDevice {
		fmt.Sscanf(m.Labels["device"], "%d", &of.device)
		of.capture = at
		f.devices.see(of)
		key = fmt.Sprintf("%d %s", at, key)
	}
	x := f.metrics[key]
	if x == nil {
		x = &metricFold{m: *m, rule: rule, of: of}
		x.m.Source.Rows = 0
		f.metrics[key] = x
		f.order = append(f.order, key)
		if rule.Events != "" && len(m.Labels) > 0 {
			f.seen[m.ID] = append(f.seen[m.ID], m.Labels)
		}
	}
	x.captures++
	x.n += m.N
	x.m.Source.Rows += m.Source.Rows
	x.addSource(&m.Source)
	v := *m.Value
	switch rule.How {
	case report.HowMax:
		*x.most() = max(*x.most(), v)
	case report.HowMin:
		*x.most() = min(*x.most(), v)
	case report.HowRatio:
		above, below := partsOf(r, m, &rule)
		x.above += above
		x.below += below
	case report.HowSum:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			x.whole += int64(v)
		} else {
			x.rest += v
		}
	}
}

// most returns the largest or smallest value so far.
func (x *metricFold) most() *float64 {
	if x.captures == 1 && x.m.Value != &x.rest {
		x.rest = *x.m.Value
		x.m.Value = &x.rest
	}
	return &x.rest
}

// addSource adds tables and columns that are missing so far; the caller adds rows.
func (x *metricFold) addSource(s *report.Source) {
	if x.captures == 1 {
		x.m.Source.Tables, x.m.Source.Columns = slices.Clone(s.Tables), slices.Clone(s.Columns)
		return
	}
	rows := x.m.Source.Rows
	x.m.Source.Add(s)
	x.m.Source.Rows = rows
}

// partsOf returns the numerator and the denominator of a ratio in one capture. If no metric states one of them, it
// follows from the ratio and the other.
func partsOf(r *report.Report, m *report.Metric, rule *report.Merge) (above, below float64) {
	value := func(id string, l report.Labels) float64 {
		if x := r.Find(id, l); x != nil && x.Value != nil {
			return *x.Value
		}
		return 0
	}
	v := *m.Value
	switch {
	case rule.Of == "":
		below = value(rule.Over, report.Labels{})
		return math.Round(v * below), below
	case rule.More && v > 0:
		above = value(rule.Of, m.Labels)
		return above, math.Round(above / v)
	}
	return value(rule.Of, m.Labels), value(rule.Over, m.Labels)
}

// value returns the value of a merged metric; nil if it is unknown.
func (f *fold) value(x *metricFold) *float64 {
	v := 0.0
	switch x.rule.How {
	case report.HowDevice:
		return x.m.Value
	case report.HowRatio, report.HowPart:
		above, below := x.above, x.below
		if x.rule.How == report.HowPart { // includes captures that lack this part or do not list it
			if all := f.metrics[x.rule.Over]; all != nil {
				below = float64(all.whole)
			}
			if part := f.metrics[report.MetricKey(x.rule.Of, x.m.Labels)]; part != nil {
				above = float64(part.whole)
			}
		}
		if below <= 0 {
			return nil
		}
		v = above / below
		if x.m.Unit == report.PerSecond {
			v *= 1e9
		}
	case report.HowMax, report.HowMin:
		v = x.rest
	default:
		v = float64(x.whole) + x.rest
	}
	return &v
}

func (f *fold) section(at int, s *report.Section) {
	status := f.status[s.ID]
	if status == nil {
		status = &statusFold{n: map[report.Status]int{}}
		f.status[s.ID] = status
		own := *s
		own.Tables = nil
		f.sections = append(f.sections, own)
	}
	status.n[s.Status]++
	status.why = cmp.Or(status.why, s.Reason)
	for i := range s.Tables {
		t := &s.Tables[i]
		id := s.ID + "/" + t.ID
		rule := f.opt.Rules.tables[id]
		if rule == nil || s.ID == unitSection {
			continue
		}
		x := f.tables[id]
		if x == nil {
			x = newTableFold(rule, t)
			f.tables[id] = x
			f.tableIDs[s.ID] = append(f.tableIDs[s.ID], id)
		}
		x.add(at, t)
	}
}

// warn keeps each warning once, with the number of captures that give it.
func (f *fold) warn(_ int, w report.Warning) {
	same := func(x report.Warning) bool { return x.Code == w.Code && x.Section == w.Section }
	if at := slices.IndexFunc(f.warnings, same); at < 0 {
		f.warnings = append(f.warnings, w)
	}
}

// deviceKey is a GPU of one capture.
type deviceKey struct {
	capture int
	device  int64
}

func (k deviceKey) String() string { return fmt.Sprintf("%d:%d", k.capture, k.device) }

// devices numbers the GPUs of a run: by their own numbers if no two captures share one, else consecutively in the order
// of ranks.
type devices struct {
	list    []deviceKey
	seen    map[deviceKey]bool
	numbers map[deviceKey]int64
}

func (d *devices) see(k deviceKey) {
	if d.seen == nil {
		d.seen = map[deviceKey]bool{}
	}
	if !d.seen[k] {
		d.seen[k] = true
		d.list = append(d.list, k)
	}
}

// settle assigns the numbers; before orders the captures.
func (d *devices) settle(before func(a, b int) int) (renumbered bool) {
	slices.SortFunc(d.list, func(a, b deviceKey) int {
		return cmp.Or(before(a.capture, b.capture), cmp.Compare(a.capture, b.capture), cmp.Compare(a.device, b.device))
	})
	own := map[int64]bool{}
	for _, k := range d.list {
		renumbered = renumbered || own[k.device]
		own[k.device] = true
	}
	d.numbers = map[deviceKey]int64{}
	for i, k := range d.list {
		d.numbers[k] = k.device
		if renumbered {
			d.numbers[k] = int64(i)
		}
	}
	return renumbered
}

func (d *devices) number(k deviceKey) int64 { return d.numbers[k] }

// hashed returns the first half of the SHA-256 of parts.
func hashed(parts ...string) *string {
	s := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	text := hex.EncodeToString(s[:16])
	return &text
}
