package history

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Run is one capture of one commit, as the store has it.
type Run struct {
	Key        string    `json:"key"`        // the same in every store
	Repository string    `json:"repository"` // as the user calls it; may be empty
	Branch     string    `json:"branch"`
	Commit     string    `json:"commit"` // 40 or 64 hexadecimal digits
	Time       time.Time `json:"time"`   // in UTC, to the second: the place of the run in its series
	Workload   string    `json:"workload"`
	Epoch      string    `json:"epoch"`
	Capture    string    `json:"capture"`
	Name       string    `json:"name"` // of the trace, hostile text

	id int64
}

// Place says where the runs of an Add belong.
type Place struct {
	Repository string
	Branch     string
	Commit     string
	Time       time.Time // of the run; the zero value is now
	Workload   string    // a name of the workload beside what the reports say of it; may be empty
	Tags       []string  // names of the commit, which budgets and others refer to: v1.4.0
	// Environment is what lies beneath the workload and no capture says: the container, the version of the engine.
	Environment map[string]string
}

// BisectBranch holds the captures that explain bisect made, in the order in which it made them. It is no series of nights:
// who asks for all branches does not mean it.
const BisectBranch = "explain/bisect"

var (
	commitText      = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	environmentName = pattern.New(`^[a-z][a-z_]{0,40}$`)

	plainText = pattern.New(`^[\pL\pN _./@:+#=,-]*$`)
)

// check reports what no run may be.
func (p *Place) check(now time.Time) error {
	switch {
	case !commitText().MatchString(p.Commit):
		return fmt.Errorf("commit %q is not a full id, which has 40 hexadecimal digits, as git rev-parse HEAD prints them", p.Commit)
	case p.Branch == "":
		return errors.New("name the branch that the commit is of")
	case p.Time.Unix() < 946684800:
		return fmt.Errorf("time %s is before 2000: name the time of the run as 2026-01-31T22:00:00Z", p.Time.UTC().Format(time.RFC3339))
	case p.Time.After(now.Add(24 * time.Hour)):
		return fmt.Errorf("time %s is still to come: is the clock right?", p.Time.UTC().Format(time.RFC3339))
	}
	for what, text := range map[string]string{"repository": p.Repository, "branch": p.Branch, "workload": p.Workload,
		"tag": strings.Join(p.Tags, "")} {
		if len(text) > 200 || !plainText().MatchString(text) {
			return fmt.Errorf("%s %q: letters, digits and . _ / @ : + # = , - are expected, at most 200 of them", what, text)
		}
	}
	for name, value := range p.Environment {
		if !environmentName().MatchString(name) || name == machineField || len(value) > 200 || !plainText().MatchString(value) {
			return fmt.Errorf("environment %s=%q: a name such as container or engine, and letters, digits and . _ / @ : + # = , -, at most 200 of them", name, value)
		}
	}
	return nil
}

// Workload is what runs must share to be of one series: fields in which two reports are not comparable, and what a unit
// of work is.
type Workload map[string]string

// WorkloadOf is what a report says of its workload.
func WorkloadOf(r *report.Report) Workload { return workloadOf(r, "") }

// workloadOf reads it off a report; name tells workloads apart that reports cannot.
func workloadOf(r *report.Report, name string) Workload {
	w := Workload{}
	put := func(key, value string) {
		if value != "" {
			w[key] = value
		}
	}
	for _, f := range report.EnvironmentFields() {
		if f.Class == report.HardField {
			put(f.Name, f.Get(&r.Environment))
		}
	}
	put("gpus", strconv.Itoa(len(r.Environment.GPUs)))
	put("unit", r.Unit.Kind)
	if r.Unit.Kind != "kernel" { // a unit that starts at a kernel is the same one when that kernel is replaced
		put("unit name", r.Unit.Name)
	}
	put("workload", name)
	return w
}

// machineField of an epoch is the machine: its host and its GPUs.
const machineField = "machine"

// engineField of an epoch is the server and its version, as its log says.
const engineField = "engine"

// epochOf are the fields that may differ between runs of a series and shift its numbers: what comes before and after
// such a change is not told apart by the commit. More are those that no report says.
func epochOf(r *report.Report, more map[string]string) Workload {
	e := Workload{}
	for _, f := range report.EnvironmentFields() {
		if v := f.Get(&r.Environment); f.Class == report.SoftField && v != "" {
			e[f.Name] = v
		}
	}
	if v := engineOf(r); v != "" {
		e[engineField] = v
	}
	if r.Capture.Host != nil {
		e[machineField] = *r.Capture.Host
	}
	for name, value := range more {
		if value != "" {
			e[name] = value
		}
	}
	return e
}

// engineOf is the server and its version; empty if no log says it. Builds between two releases are one version: a
// commit of the engine is no change of what lies beneath it.
func engineOf(r *report.Report) string {
	facts := map[string]string{}
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[k]
			if t.ID != "engine_facts" {
				continue
			}
			for _, row := range t.Rows {
				if len(row) == 2 {
					fact, _ := row[0].Str()
					facts[fact], _ = row[1].Str()
				}
			}
		}
	}
	version, _, _ := strings.Cut(facts["version"], "+")
	if release, _, built := strings.Cut(version, ".dev"); built {
		version = release + ".dev"
	}
	return strings.TrimSpace(facts["engine"] + " " + version)
}

// agrees reports whether two environments differ in nothing that both know.
func (w Workload) agrees(v Workload) bool {
	for k, value := range w {
		if other, ok := v[k]; ok && other != value {
			return false
		}
	}
	return true
}

// EnvironmentOf names the machine and all that is beneath a workload: captures that share it share a level.
func EnvironmentOf(r *report.Report) string { return epochOf(r, nil).id() }

// id names a workload or an epoch in every store.
func (w Workload) id() string { return hash(w.text())[:16] }

// text is canonical: encoding/json sorts keys.
func (w Workload) text() string {
	b, _ := json.Marshal(w) // strings cannot fail
	return string(b)
}

// keys are those of two workloads, sorted.
func (w Workload) keys(v Workload) []string {
	both := maps.Clone(w)
	if both == nil {
		both = Workload{}
	}
	maps.Copy(both, v)
	return slices.Sorted(maps.Keys(both))
}

// Differs names the first field in which two workloads differ, or is empty.
func (w Workload) Differs(v Workload) string {
	for _, k := range w.keys(v) {
		if w[k] != v[k] {
			return fmt.Sprintf("%s is %q and %q", k, w[k], v[k])
		}
	}
	return ""
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// captureOf names a capture: by its events where the report says so, else by all that the report says.
func captureOf(r *report.Report) (string, error) {
	if r.Capture.Content != nil {
		return *r.Capture.Content, nil
	}
	same := *Keep(r)
	same.Trace.Name, same.Tool = "", report.Tool{}
	var b bytes.Buffer
	if err := report.Write(&b, &same); err != nil {
		return "", err
	}
	return hash(b.String())[:32], nil
}

// metricKey names a series of points within a workload. Kind is of the unit that the metric is of: what the report
// calls its main kind can be another one in the next capture.
type metricKey struct{ metric, labels, kind string }

// point is one headline number of a run.
type point struct {
	metricKey
	unit   string
	better report.Direction
	value  float64
}

// maxPoints bounds the points of a run: the first of them by metric.
const maxPoints = 400

// pointsOf are the headline numbers of a report: whatever holds for one unit of work, a level or a statistic of single
// events, of the whole or of a kind of unit, each under its fewest labels. Numbers that grow with the length of a
// capture are no points.
func pointsOf(r *report.Report) []point {
	var list []point
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if m.Scale == report.Total || !headline(m) {
			continue
		}
		add := func(id string, v float64) {
			list = append(list, point{metricKey{id, labelText(m.Labels), m.Group}, m.Unit, m.Better, v})
		}
		switch s := m.Summary; {
		case s != nil && (m.ID == "unit.time" || strings.HasPrefix(m.ID, "serve.")):
			add(m.ID+".p50", s.P50)
			add(m.ID+".mean", s.Mean)
			add(m.ID+".p99", s.P99)
		case s != nil && strings.HasPrefix(m.ID, "unit."):
			add(m.ID+".mean", s.Mean)
		case m.Value != nil:
			add(m.ID, *m.Value)
		}
	}
	slices.SortStableFunc(list, func(a, b point) int {
		return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.kind, b.kind),
			cmp.Compare(len(labelsOf(a.labels)), len(labelsOf(b.labels))), strings.Compare(a.labels, b.labels))
	})
	list = slices.CompactFunc(list, func(a, b point) bool { return a.kind != "" && a.metric == b.metric && a.kind == b.kind })
	return list[:min(len(list), maxPoints)]
}

// headline reports whether a metric is of the whole or of a kind of unit, and of something that a team watches.
func headline(m *report.Metric) bool {
	for k := range m.Labels {
		if k != "phase" && k != "batch" && k != "tokens" {
			return false
		}
	}
	switch family, _, _ := strings.Cut(m.ID, "."); family {
	case "unit", "serve", "load":
		return true
	default:
		return len(m.Labels) == 0 && (family == "graph" || family == "gpu")
	}
}
