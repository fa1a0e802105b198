package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// maxReportBytes bounds what Read accepts. A report of a real serving trace is under 2 MB.
const maxReportBytes = 64 << 20

// JSON encodes a value as a line, or indented, without HTML escaping, so that kernel names stay greppable.
func JSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Write validates the report and writes it as JSON: one line per metric, table row, finding and warning, so that diffs
// of two reports are readable, and the same report always gives the same bytes.
func Write(w io.Writer, r *Report) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return WriteLines(w, r)
}

// Read parses a report and validates it, see [ReadVersioned].
func Read(rd io.Reader) (*Report, error) {
	r, err := ReadVersioned[Report](rd, "report", SchemaID, maxReportBytes)
	if err != nil {
		return nil, err
	}
	r.Fill()
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// Fill replaces nil slices and maps, so that "never null" holds for what was read as for what is written.
func (r *Report) Fill() {
	Complete(r)
	for i := range r.Sections {
		r.Sections[i].typeCells()
	}
	for i := range r.Unit.Cuts {
		r.Unit.Cuts[i].Section.typeCells()
	}
}

// typeCells gives the whole numbers of columns of floats their type back: JSON does not tell 24 from 24.0.
func (s *Section) typeCells() {
	for _, t := range s.Tables {
		for j, c := range t.Columns {
			if c.Kind != Float {
				continue
			}
			for _, row := range t.Rows {
				if j < len(row) {
					if v, ok := row[j].Int(); ok {
						row[j] = F(float64(v))
					}
				}
			}
		}
	}
}

// Validate reports the first thing that makes r break its contract: what [Sound] refuses, a row that does not fit its
// columns, a metric twice or without a source, a finding that cites a metric that is not there.
func (r *Report) Validate() error {
	if r.Schema != SchemaID {
		return fmt.Errorf("report: schema is %q, expected %q", r.Schema, SchemaID)
	}
	if err := Sound(r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := r.Unit.validate(); err != nil {
		return fmt.Errorf("report: unit: %w", err)
	}
	known := make(map[string]bool, len(r.Metrics))
	for _, m := range r.Metrics {
		key := MetricKey(m.ID, m.Labels)
		if err := m.validate(); err != nil {
			return fmt.Errorf("report: metric %s: %w", key, err)
		}
		if known[key] {
			return fmt.Errorf("report: metric %s: appears twice", key)
		}
		known[key] = true
	}
	ids := make(map[string]bool, len(r.Sections))
	for _, s := range r.Sections {
		if ids[s.ID] {
			return fmt.Errorf("report: section %s: appears twice", s.ID)
		}
		ids[s.ID] = true
		if err := s.validate(); err != nil {
			return fmt.Errorf("report: section %s: %w", s.ID, err)
		}
	}
	for _, f := range r.Findings {
		if err := cites(known, f.ID, f.Evidence); err != nil {
			return err
		}
		if w := f.Worth; w != nil && (w.Time < 0 || w.Time > w.Of || w.Of == 0 || w.Units < 0) {
			return fmt.Errorf("report: finding %s: worth %d ns of %d", f.ID, w.Time, w.Of)
		}
	}
	for i := range r.Remarks {
		if err := cites(known, r.Remarks[i].ID, r.Remarks[i].Evidence); err != nil {
			return err
		}
	}
	return r.validateCuts(known)
}

func (m *Metric) validate() error {
	if m.ID == "" || m.Unit == "" {
		return errors.New("has no id or no unit")
	}
	if len(m.Source.Tables) == 0 {
		return errors.New("has no source")
	}
	last := int64(math.MinInt32 - 1)
	for _, bin := range ValueOr(m.Histogram, Histogram{}).Bins {
		if bin[0] <= last || bin[0] > math.MaxInt32 {
			return errors.New("has a histogram whose bins do not ascend")
		}
		last = bin[0]
	}
	return nil
}

func (s *Section) validate() error {
	if s.Status != OK && s.Reason == "" {
		return fmt.Errorf("status %s without a reason", s.Status)
	}
	for _, t := range s.Tables {
		if err := t.Validate(); err != nil {
			return fmt.Errorf("table %s: %w", t.ID, err)
		}
	}
	for _, c := range s.Charts {
		for _, e := range c.Series {
			if len(e.Labels) != len(e.Values) {
				return fmt.Errorf("chart %s: series %s: %d labels for %d values", c.ID, e.Name, len(e.Labels),
					len(e.Values))
			}
		}
	}
	return nil
}

// Validate reports a file that is not a plain name, which would be written or removed outside of tables/, or the first
// row that does not fit the columns.
func (t *Table) Validate() error {
	if t.Columns == nil || t.Rows == nil {
		return errors.New("a list is null")
	}
	if strings.ContainsAny(t.File, `/\:`) || strings.HasPrefix(t.File, ".") {
		return fmt.Errorf("its file %q is not the name of one", t.File)
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("row %d has %d cells for %d columns", i, len(row), len(t.Columns))
		}
		for j, c := range row {
			if f, _ := c.Num(); math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("row %d: %s is not finite", i, t.Columns[j].ID)
			}
			if !c.IsNull() && !slices.Contains(columnsFor[c.kind()], t.Columns[j].Kind) {
				return fmt.Errorf("row %d: %s holds %q, not a %s", i, t.Columns[j].ID, c.kind(), t.Columns[j].Kind)
			}
		}
	}
	return nil
}

// columnsFor are the kinds of column that a kind of cell fits.
var columnsFor = map[byte][]Kind{'i': {Int, Moment, Float}, 'f': {Float}, 's': {Name, Text}, 'b': {Bool}}

// cites makes sure that what a finding stands on is in the report.
func cites(known map[string]bool, id string, evidence []MetricRef) error {
	for _, ref := range evidence {
		if !known[MetricKey(ref.ID, ref.Labels)] {
			return fmt.Errorf("report: finding %s: cites %s{%s}, which is not in the report", id, ref.ID, ref.Labels)
		}
	}
	return nil
}
