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
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Run is one capture of one commit, as the store has it.
type Run struct {
	Key string `json:"key"` // the same in every store
	Origin
	Name string `json:"name"` // of the trace; untrusted text

	id int64
}

// Origin says what was captured, where and when.
type Origin struct {
	Repository string    `json:"repository"` // as the user calls it; may be empty
	Branch     string    `json:"branch"`
	Commit     string    `json:"commit"` // 40 or 64 hexadecimal digits
	Time       time.Time `json:"time"`   // in UTC, to the second; orders the runs of a series
	Workload   string    `json:"workload"`
	Epoch      string    `json:"epoch"`
	Capture    string    `json:"capture"`
}

// Place says where the runs of an Add belong.
type Place struct {
	Repository string
	Branch     string
	Commit     string
	Time       time.Time // of the run; the zero value is now
	Workload   string    // a name that distinguishes workloads whose reports are alike; may be empty
	Tags       []string  // names of the commit that budgets can refer to: v1.4.0
	// Environment lists what the workload runs on and no capture has: the container, the version of the engine.
	Environment map[string]string
}

// BisectBranch holds the captures that explain bisect made, in the order in which it made them. They are not a series
// of nights: a query over all branches leaves them out.
const BisectBranch = "explain/bisect"

var (
	commitText      = pattern.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	environmentName = pattern.New(`^[a-z][a-z_]{0,40}$`)

	plainText = pattern.New(`^[\pL\pN _./@:+#=,-]*$`)
)

// Check returns an error for a place that no run may have, or no reference commit beside it.
func (p *Place) Check(pinned *Pinned, now time.Time) error {
	switch {
	case !commitText().MatchString(p.Commit):
		return fmt.Errorf("commit %q is not a full id, which has 40 hexadecimal digits, as git rev-parse HEAD prints them", p.Commit)
	case pinned != nil && !commitText().MatchString(pinned.Commit):
		return fmt.Errorf("reference commit %q is not a full id, which has 40 hexadecimal digits", pinned.Commit)
	case p.Branch == "":
		return errors.New("name the branch that the commit is of")
	case !p.Time.IsZero() && p.Time.Unix() < 946684800:
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

// Workload holds the fields that the runs of a series must share: those in which comparable reports agree, and the unit
// of work.
type Workload map[string]string

// WorkloadOf returns the workload of a report; name distinguishes workloads whose reports are alike.
func WorkloadOf(r *report.Report, name string) Workload {
	w := Workload{}
	for _, f := range report.EnvironmentFields() {
		if f.Class == report.HardField {
			w.put(f.Name, f.Get(&r.Environment))
		}
	}
	w.put("gpus", strconv.Itoa(len(r.Environment.GPUs)))
	w.put("unit", r.Unit.Kind)
	if r.Unit.Kind != "kernel" { // a unit that starts at a kernel stays the same when that kernel is replaced
		w.put("unit name", r.Unit.Name)
	}
	w.put("workload", name)
	return w
}

// put sets a field unless its value is unknown.
func (w Workload) put(key, value string) {
	if value != "" {
		w[key] = value
	}
}

// machineField is the field of an epoch that names the machine: its host.
const machineField = "machine"

// epochOf returns the fields that may differ between runs of a series and shift its numbers: the effect of such a
// change cannot be separated from that of a commit. more holds fields that are in no report.
func epochOf(r *report.Report, more map[string]string) Workload {
	e := Workload{}
	for _, f := range report.EnvironmentFields() {
		if f.Class == report.SoftField {
			e.put(f.Name, f.Get(&r.Environment))
		}
	}
	e.put("engine", engineOf(r))
	e.put(machineField, report.ValueOr(r.Capture.Host, ""))
	for name, value := range more {
		e.put(name, value)
	}
	return e
}

// engineOf returns the server and its version; empty if no log has it. Builds between two releases count as one
// version: a commit of the engine is not a change of the environment.
func engineOf(r *report.Report) string {
	facts, t := map[string]string{}, report.NewIndex(r).Table("engine_start", "engine_facts")
	for i := range t.Len() {
		facts[t.Str(i, "fact")] = t.Str(i, "value")
	}
	version, _, _ := strings.Cut(facts["version"], "+")
	if release, _, built := strings.Cut(version, ".dev"); built {
		version = release + ".dev"
	}
	return strings.TrimSpace(facts["engine"] + " " + version)
}

// agrees reports whether two environments agree in every field that both have.
func (w Workload) agrees(v Workload) bool {
	for k, value := range w {
		if other, ok := v[k]; ok && other != value {
			return false
		}
	}
	return true
}

// EnvironmentOf returns the id of the environment of a capture: captures with equal ids share a level.
func EnvironmentOf(r *report.Report) string { return epochOf(r, nil).id() }

// id returns the id of a workload or an epoch, which is the same in every store.
func (w Workload) id() string { return hash(w.text())[:16] }

// text formats a workload canonically: encoding/json sorts keys.
func (w Workload) text() string {
	b, _ := json.Marshal(w) // strings cannot fail
	return string(b)
}

// without returns a copy without some fields.
func (w Workload) without(fields ...string) Workload {
	w = maps.Clone(w)
	for _, f := range fields {
		delete(w, f)
	}
	return w
}

// moved returns the fields in which two workloads differ, by name.
func (w Workload) moved(v Workload) (list []Moved) {
	both := Workload{}
	maps.Copy(both, w)
	maps.Copy(both, v)
	for _, k := range slices.Sorted(maps.Keys(both)) {
		if w[k] != v[k] {
			list = append(list, Moved{k, w[k], v[k]})
		}
	}
	return list
}

// Differs names the first field in which two workloads differ, or is empty.
func (w Workload) Differs(v Workload) string {
	for _, m := range w.moved(v) {
		return fmt.Sprintf("%s is %q and %q", m.Name, m.Before, m.After)
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

// captureOf returns the id of a capture: the hash of its events if the report has it, else a hash of the whole report.
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

// metricKey names a series of points within a workload. Kind is the kind of unit of the metric, because the main kind
// of a report can be another one in the next capture.
type metricKey struct{ metric, labels, kind string }

// point is one headline number of a run.
type point struct {
	metricKey
	unit   string
	better report.Direction
	value  float64
}

// maxPoints bounds the points of a run: the first ones by metric.
const maxPoints = 400

// pointsOf returns the headline numbers of a report: numbers per unit of work, levels, and statistics of single events,
// for the whole capture or a kind of unit, each under its fewest labels. It leaves out numbers that grow with the
// length of a capture.
func pointsOf(r *report.Report) []point {
	var list []point
	for _, m := range r.Metrics {
		if m.Scale == report.Total || !headline(&m) {
			continue
		}
		add := func(id string, v float64) {
			list = append(list, point{metricKey{id, Workload(m.Labels.Clone()).text(), m.Group}, m.Unit, m.Better, v})
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
	lists.Sort(list, func(a, b point) int {
		return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.kind, b.kind),
			cmp.Compare(len(labelsOf(a.labels)), len(labelsOf(b.labels))), strings.Compare(a.labels, b.labels))
	})
	list = slices.CompactFunc(list, func(a, b point) bool { return a.kind != "" && a.metric == b.metric && a.kind == b.kind })
	return list[:min(len(list), maxPoints)]
}

// headline reports whether a metric is about the whole capture or a kind of unit, and of a family that teams watch.
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
