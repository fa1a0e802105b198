package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func value(v float64) *float64 { return &v }

// small is a report with one of everything.
func small() *Report {
	r := &Report{
		Schema: SchemaID, Tool: Tool{Name: "explain", Version: "test"}, Trace: Provenance{Name: "a.sqlite", Kind: "nsys-sqlite", Bytes: 10},
		Window: Window{Start: -5, End: 95, Length: 100, Mode: "capture", Why: "all"}, Unit: Unit{Kind: "none", Why: "none found"},
		Metrics: []Metric{{
			ID: "gpu.busy_time", Labels: Labels{"device": "0"}, Value: value(75), Unit: Nanoseconds, Better: None, Assume: Noisy, Scale: Total, N: 3, Lifecycle: Stable,
			Summary:   &Summary{N: 3, Min: 1, P50: 2, P90: 2.8, P99: 2.98, Max: 3, Mean: 2, Stddev: 0.816496580927726},
			Histogram: &Histogram{Growth: 1.02, Bins: [][2]int64{{-3, 1}, {35, 2}}},
			Source:    Source{Tables: []string{"CUPTI_ACTIVITY_KIND_KERNEL"}, Rows: 3},
		}},
		Sections: []Section{{ID: "gpu_time", Title: "GPU time", Status: OK, Tables: []Table{{
			ID: "t", Columns: []Column{{ID: "a", Kind: Name}, {ID: "b", Kind: Int, Unit: Nanoseconds}, {ID: "c", Kind: Float}, {ID: "d", Kind: Bool}},
			Rows: [][]Cell{{S("<k> \"|\" \u202e"), I(math.MaxInt64), F(0.5), B(true)}, {Null, I(-1), I(2), B(false)}}, TotalRows: 2,
		}}}},
		Findings: []Finding{{ID: "f", Severity: High, Title: "t", Evidence: []MetricRef{{ID: "gpu.busy_time", Labels: Labels{"device": "0"}}}, Doc: "gpu_time"}},
		Warnings: []Warning{{Code: "w", Text: "text"}},
	}
	r.Fill()
	return r
}

func written(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Writing, reading and writing again gives the same bytes: nothing is lost, int64 included, and no list is null.
func TestRoundTrip(t *testing.T) {
	first := written(t, small())
	r, err := Read(strings.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if second := written(t, r); second != first {
		t.Errorf("first:\n%s\nsecond:\n%s", first, second)
	}
	if v, ok := r.Sections[0].Tables[0].Rows[0][1].Int(); !ok || v != math.MaxInt64 {
		t.Errorf("int64 cell = %d, %v", v, ok)
	}
	for _, list := range []string{`"tables": null`, `"metrics": null`, `:null,"columns"`, `"advice":null`, `"labels":null`} {
		if strings.Contains(first, list) {
			t.Errorf("a list is null: %s", list)
		}
	}
	if !strings.Contains(first, "<k>") {
		t.Error("names are HTML-escaped in report.json: they can no longer be searched for")
	}
}

func TestReadIgnoresUnknownFields(t *testing.T) {
	text := strings.Replace(written(t, small()), `"tool":`, `"from_the_future": {"a": [1]},`+"\n"+`"tool":`, 1)
	if _, err := Read(strings.NewReader(text)); err != nil {
		t.Error(err)
	}
}

func TestReadRefuses(t *testing.T) {
	good := written(t, small())
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "not a report"},
		"other JSON":    {`{"a": 1}`, `field "schema" is ""`},
		"other major":   {strings.Replace(good, "explain.report/1", "explain.report/2", 1), `has format "explain.report/2", this version reads "explain.report/1"`},
		"wrong type":    {strings.Replace(good, `"bytes":10`, `"bytes":"ten"`, 1), "cannot be read"},
		"array in cell": {strings.Replace(good, `-1,2,false`, `-1,[2],false`, 1), "a cell is a single value"},
		"short row":     {strings.Replace(good, `-1,2,false`, `-1,2`, 1), "has 3 cells for 4 columns"},
		"text in int":   {strings.Replace(good, `-1,2,false`, `"x",2,false`, 1), "b holds"},
		"no source":     {strings.Replace(good, `"tables":["CUPTI_ACTIVITY_KIND_KERNEL"]`, `"tables":[]`, 1), "has no source"},
		"bad status":    {strings.Replace(good, `"status":"ok"`, `"status":"fine"`, 1), `status is "fine"`},
		"file outside":  {strings.Replace(good, `"file":""`, `"file":"../../kernels.csv"`, 1), `its file "../../kernels.csv" is not the name of one`},
		"file's folder": {strings.Replace(good, `"file":""`, `"file":".."`, 1), `its file ".." is not the name of one`},
		"file of drive": {strings.Replace(good, `"file":""`, `"file":"c:kernels.csv"`, 1), `its file "c:kernels.csv" is not the name of one`},
		"file, Windows": {strings.Replace(good, `"file":""`, `"file":"..\\\\k.csv"`, 1), "is not the name of one"},
		"lost evidence": {strings.Replace(good, `"evidence":[{"id":"gpu.busy_time"`, `"evidence":[{"id":"gpu.other"`, 1), "cites gpu.other{device=0}, which is not in the report"},
	} {
		if c.text == good {
			t.Errorf("%s: the text was not changed", name)
		}
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestWriteRefusesWhatBreaksTheContract(t *testing.T) {
	for name, breakIt := range map[string]func(r *Report){
		"NaN":           func(r *Report) { r.Metrics[0].Value = value(math.NaN()) },
		"Inf":           func(r *Report) { r.Metrics[0].Summary.Max = math.Inf(1) },
		"twice":         func(r *Report) { r.Metrics = append(r.Metrics, r.Metrics[0]) },
		"null list":     func(r *Report) { r.Findings = nil },
		"null labels":   func(r *Report) { r.Metrics[0].Labels = nil },
		"no reason":     func(r *Report) { r.Sections[0].Status = Unavailable },
		"section twice": func(r *Report) { r.Sections = append(r.Sections, r.Sections[0]) },
		"severity":      func(r *Report) { r.Findings[0].Severity = "worst" },
		"polarity":      func(r *Report) { r.Metrics[0].Better = "" },
		"NaN cell":      func(r *Report) { r.Sections[0].Tables[0].Rows[0][2] = F(math.NaN()) },
		"schema":        func(r *Report) { r.Schema = "other" },
		"bins":          func(r *Report) { r.Metrics[0].Histogram = &Histogram{Bins: [][2]int64{{5, 1}, {1, 1}}} },
		"equal bins":    func(r *Report) { r.Metrics[0].Histogram = &Histogram{Bins: [][2]int64{{5, 1}, {5, 1}}} },
		"distant bins": func(r *Report) {
			r.Metrics[0].Histogram = &Histogram{Bins: [][2]int64{{math.MinInt64, 1}, {9, 1}}}
		},
		"chart": func(r *Report) {
			r.Sections[0].Charts = []Chart{{Series: []Series{{Labels: []string{"a"}, Values: []float64{}}}}}
		},
	} {
		r := small()
		breakIt(r)
		var b bytes.Buffer
		if err := Write(&b, r); err == nil || b.Len() > 0 {
			t.Errorf("%s: error %v, %d bytes written", name, err, b.Len())
		}
	}
}

func TestFind(t *testing.T) {
	r := small()
	if r.Find("gpu.busy_time", Labels{"device": "0"}) == nil {
		t.Error("metric not found")
	}
	for _, l := range []Labels{nil, {"device": "1"}, {"device": "0", "x": "y"}} {
		if r.Find("gpu.busy_time", l) != nil {
			t.Errorf("found with labels %v", l)
		}
	}
	if got := (Labels{"b": "2", "a": "1"}).String(); got != "a=1,b=2" {
		t.Errorf("labels as text: %q", got)
	}
}

// Cells are equal if their kinds and values are, wherever a text lies in memory.
func TestCellsAreEqualByValue(t *testing.T) {
	empty := string([]byte{})
	cells := []Cell{Null, I(0), I(1), F(0), F(1), B(false), B(true), S(""), S("a"), S("b"), S("ab")}
	again := []Cell{{}, I(0), I(1), F(0), F(1), B(false), B(true), S(empty), S(string([]byte{'a'})), S(string([]byte{'b'})), S("abc"[:2])}
	for i, a := range cells {
		for j, b := range again {
			if a.Equal(b) != (i == j) {
				t.Errorf("cells %d and %d: equal is %v", i, j, a.Equal(b))
			}
		}
	}
	for i, want := range map[int]string{7: "", 8: "a", 10: "ab"} {
		if got, ok := again[i].Str(); !ok || got != want {
			t.Errorf("cell %d is %q, %v", i, got, ok)
		}
	}
	if _, ok := Null.Str(); ok {
		t.Error("null is a text")
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, small()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema":"explain.report/1"}`))
	f.Add([]byte(`{"schema":"explain.report/1","sections":[{"tables":[{"rows":[[null,1e400]]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, r); err != nil {
			t.Fatalf("a report that was read cannot be written: %v", err)
		}
		if _, err := Read(&again); err != nil {
			t.Fatalf("a report that was written cannot be read: %v", err)
		}
	})
}
