package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// CutMetrics are the metrics of a cut, without histograms and sources. They are written as tables, of one metric id and
// one set of dimensions each, because the same names of kernels come again and again:
//
//	{"texts": ["gemm", "softmax"], "tables": [
//	  {"id": "kernel.time_per_unit", "unit": "ns", …, "labels": ["kernel"], "rows": [[0, -1, 40, 812.5], [1, -1, 40, 97]]}]}
//
// A row is the place in texts of each label and of the kind of unit (-1 for none), n, the value, and of metrics with a
// summary its n, min, p50, p90, p99, max, mean and stddev.
type CutMetrics []Metric

type metricTables struct {
	Texts  []string      `json:"texts"`
	Tables []metricTable `json:"tables"`
}

type metricTable struct {
	metricKind
	Labels []string     `json:"labels"`
	Rows   [][]*float64 `json:"rows"`
}

// metricKind is what all metrics of a table have in common.
type metricKind struct {
	ID        string    `json:"id"`
	Unit      string    `json:"unit"`
	Better    Direction `json:"better"`
	Assume    Noise     `json:"assume"`
	Scale     Scale     `json:"scale"`
	Lifecycle Lifecycle `json:"lifecycle"`
}

// Order sorts metrics by id and dimensions, as they are written.
func (c CutMetrics) Order() {
	lists.Sort(c, func(a, b Metric) int {
		if a.ID != b.ID {
			return cmp.Compare(a.ID, b.ID)
		}
		return slices.Compare(slices.Sorted(maps.Keys(a.Labels)), slices.Sorted(maps.Keys(b.Labels)))
	})
}

// MarshalJSON writes the tables.
func (c CutMetrics) MarshalJSON() ([]byte, error) {
	out := metricTables{Tables: []metricTable{}}
	var texts lists.Numbering[string]
	number := func(v int64) *float64 { return new(float64(v)) }
	place := func(text string) *float64 { return number(int64(texts.Of(text))) }
	for _, m := range c {
		keys := slices.Sorted(maps.Keys(m.Labels))
		kind := metricKind{m.ID, m.Unit, m.Better, m.Assume, m.Scale, m.Lifecycle}
		if n := len(out.Tables); n == 0 || out.Tables[n-1].metricKind != kind || !slices.Equal(out.Tables[n-1].Labels, keys) {
			out.Tables = append(out.Tables, metricTable{metricKind: kind, Labels: append([]string{}, keys...)})
		}
		row := make([]*float64, 0, len(keys)+11)
		for _, k := range keys {
			row = append(row, place(m.Labels[k]))
		}
		group := number(-1)
		if m.Group != "" {
			group = place(m.Group)
		}
		row = append(row, group, number(m.N), m.Value)
		if s := m.Summary; s != nil {
			row = append(row, number(s.N), &s.Min, &s.P50, &s.P90, &s.P99, &s.Max, &s.Mean, &s.Stddev)
		}
		last := &out.Tables[len(out.Tables)-1]
		last.Rows = append(last.Rows, row)
	}
	out.Texts = append([]string{}, texts.Keys...)
	return JSON(out, "")
}

// UnmarshalJSON reads the tables.
func (c *CutMetrics) UnmarshalJSON(b []byte) error {
	var in metricTables
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*c = CutMetrics{}
	for _, t := range in.Tables {
		for k, row := range t.Rows {
			m, err := t.metric(row, in.Texts)
			if err != nil {
				return fmt.Errorf("metric %s, row %d: %w", t.ID, k, err)
			}
			*c = append(*c, m)
		}
	}
	return nil
}

func (t *metricTable) metric(row []*float64, texts []string) (Metric, error) {
	m := Metric{ID: t.ID, Unit: t.Unit, Better: t.Better, Assume: t.Assume, Scale: t.Scale, Lifecycle: t.Lifecycle,
		Labels: make(Labels, len(t.Labels))}
	n := len(t.Labels)
	value := n + 2
	if len(row) != value+1 && len(row) != value+9 {
		return m, fmt.Errorf("%d numbers for %d labels", len(row), n)
	}
	for i, v := range row {
		if v == nil && i != value {
			return m, fmt.Errorf("number %d is null", i)
		}
	}
	text := func(at float64) (string, error) {
		if at < 0 || at >= float64(len(texts)) {
			return "", fmt.Errorf("text %v of %d", at, len(texts))
		}
		return texts[int(at)], nil
	}
	var err error
	for i, key := range t.Labels {
		if m.Labels[key], err = text(*row[i]); err != nil {
			return m, err
		}
	}
	if *row[n] != -1 {
		if m.Group, err = text(*row[n]); err != nil {
			return m, err
		}
	}
	m.N, m.Value = int64(*row[n+1]), row[value]
	if s := row[value+1:]; len(s) > 0 {
		m.Summary = &Summary{int64(*s[0]), *s[1], *s[2], *s[3], *s[4], *s[5], *s[6], *s[7]}
	}
	return m, nil
}
