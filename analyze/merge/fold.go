package merge

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
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
	opt.Top = cmp.Or(opt.Top, defaultTop)
	l, err := index(ctx, sources)
	if err != nil {
		return nil, err
	}
	f := &fold{opt: opt, sampled: l.sampled, several: len(l.heads()) > 1, counts: &countsFold{}}
	f.metrics = metricsFold{rules: opt.Rules, devices: &f.devices, at: map[string]*metricFold{}, rows: map[string]int{}}
	f.units.best = map[string]*bestUnit{}
	err = l.each(ctx, func(s *stored) error {
		text := s.body
		if f.sampled {
			text = s.sample
		}
		c, err := decode(s.source, s.head, text)
		whole := c
		if err == nil && f.sampled && s.body != nil { // the slowest captures are whole, for metrics of single steps
			whole, err = decode(s.source, s.head, s.body)
		}
		if err == nil {
			f.add(c, whole.Report)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(f.captures) == 0 {
		return nil, &RunError{"no capture to merge: the partials are empty"}
	}
	if err := f.captures.check(&f.warnings); err != nil {
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

type fold struct {
	opt      Options
	sampled  bool // captures are samples: the run has more than MaxExact ranks
	several  bool // the run has several captures
	captures captures
	devices  devices
	counts   *countsFold
	metrics  metricsFold
	sections sectionsFold
	units    unitsFold
	inputs   []report.TableCount
	bytes    int64
	warnings []report.Warning
}

// captures are those of a run, in the order of their keys.
type captures []*captureFold

// reports counts the captures of which only the report is available.
func (list captures) reports() int {
	return lists.Count(list, func(c *captureFold) bool { return c.From != "" })
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
	f.counts.missing = f.counts.missing || c.From != ""
	if role := lists.Find(f.opt.Roles, func(r *Role) bool { return r.Of.MatchString(c.Name) }); role != nil {
		k.role = role.Name
	}
	k.nameRanks(f.opt.Rank)
	for _, g := range r.Environment.GPUs {
		f.devices.places.Of(deviceKey{at, int64(g.Device)})
	}
	f.devices.closed = len(r.Environment.GPUs) > 0 && f.several
	f.counts.add(c.Counts)
	f.inputTables(r)
	f.bytes += r.Trace.Bytes
	f.metrics.add(at, r)
	f.units.add(at, steps, k.own.Steps, f.opt.Rules)
	for i := range r.Sections {
		f.sections.add(f, at, &r.Sections[i])
	}
	for _, w := range r.Warnings { // each once
		lists.Entry(&f.warnings, func(x report.Warning) bool { return x.Code == w.Code && x.Section == w.Section }, w)
	}
}

// nameRanks reads ranks that are otherwise unknown from the name of the capture, if the user gave a pattern.
func (k *captureFold) nameRanks(pattern *regexp.Regexp) {
	several := slices.ContainsFunc(k.tracks, func(t *ranks.Track) bool { return t.PID != k.tracks[0].PID })
	if pattern == nil || several {
		return
	}
	m := pattern.FindStringSubmatch(k.Name)
	if len(m) < 2 {
		return
	}
	var rank int64
	if _, err := fmt.Sscanf(m[1], "%d", &rank); err != nil || rank < 0 || rank > 1<<20 {
		return
	}
	for _, t := range k.tracks {
		if t.Rank < 0 {
			t.Rank, t.From = rank, "name"
		}
	}
}

func (f *fold) inputTables(r *report.Report) {
	for _, t := range r.Trace.Tables {
		same := func(x report.TableCount) bool { return x.Name == t.Name }
		all := lists.Entry(&f.inputs, same, report.TableCount{Name: t.Name})
		all.Rows += t.Rows
		all.Skipped += t.Skipped
		if t.Rows > 0 {
			f.metrics.rows[t.Name]++
		}
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
	places  lists.Numbering[deviceKey]
	numbers []int64 // by place
	closed  bool    // the capture that is added has no GPUs but those that its environment lists
}

// foreign reports whether the capture that is added only watches a GPU: plugins and counters of each rank see all GPUs
// of the host, which are those of other ranks, or of none.
func (d *devices) foreign(k deviceKey) bool { return d.closed && !d.places.Has(k) }

// settle assigns the numbers; before orders the captures.
func (d *devices) settle(before func(a, b int) int) (renumbered bool) {
	sorted := slices.SortedFunc(slices.Values(d.places.Keys), func(a, b deviceKey) int {
		return cmp.Or(before(a.capture, b.capture), cmp.Compare(a.capture, b.capture), cmp.Compare(a.device, b.device))
	})
	own := map[int64]bool{}
	for _, k := range sorted {
		renumbered = renumbered || own[k.device]
		own[k.device] = true
	}
	d.numbers = make([]int64, len(sorted))
	for i, k := range sorted {
		number := &d.numbers[d.places.Of(k)]
		if *number = k.device; renumbered {
			*number = int64(i)
		}
	}
	return renumbered
}

// number is that of a GPU in the run; 0 if it is unknown.
func (d *devices) number(k deviceKey) int64 {
	if !d.places.Has(k) {
		return 0
	}
	return d.numbers[d.places.Of(k)]
}
