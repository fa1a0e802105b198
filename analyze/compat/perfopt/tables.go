package perfopt

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Operator is a row of operators.md: an operator of PyTorch.
type Operator struct {
	Name        string
	Total, CUDA float64 // ns
	Calls       int64
}

// Kernel is a row of kernels.md.
type Kernel struct {
	Name  string
	Total float64 // ns
	Calls int64
	Mean  float64 // ns
}

// Region is a range that Nsight Compute profiled.
type Region struct {
	Name, Parent string
	Depth        int64
	Time         float64 // ns, if the file states its unit correctly
	Kernels      int64
}

// maxRows bounds what is kept of a table.
const maxRows = 10_000

// cellsOf splits a line of a Markdown table; nil if the line is not a row.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	var cells []string
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells, from = append(cells, line[from:i]), i+1
		}
	}
	cells = append(cells, line[from:])
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, `\|`, "|"))
	}
	return cells
}

// ruler reports whether the cells are the line under a table's header.
func ruler(cells []string) bool {
	odd := func(c string) bool { return strings.Trim(c, ":- ") != "" || !strings.Contains(c, "-") }
	return len(cells) > 0 && !slices.ContainsFunc(cells, odd)
}

// eachCells calls take with each row of the Markdown tables in b and counts its verdicts; lines outside tables count as
// known.
func eachCells(in *file.Input, b []byte, take func(header, cells []string) bool) {
	t := in.Tally
	var header, last []string
	for line := range bytes.Lines(b) {
		t.Records++
		cells := cellsOf(string(line))
		switch {
		case cells == nil:
			header, last = nil, nil
			t.Known++
		case header == nil && ruler(cells) && last != nil:
			header = last
			t.Known++
		case header == nil:
			last = cells
			t.Known++
		case take(header, cells):
			t.Understood++
		default:
			t.Unknown++
		}
	}
}

// searched is how many lines may stand before the first table of a page.
const searched = 39

// headerOf finds the header of the first Markdown table.
func headerOf(head []byte) []string {
	n := 0
	for line := range bytes.Lines(head) {
		if cells := cellsOf(string(line)); cells != nil || n == searched {
			return cells
		}
		n++
	}
	return nil
}

// columns recognises a page by the columns of its first table.
func columns(names ...string) func([]byte) bool {
	return func(head []byte) bool {
		header := headerOf(head)
		return !slices.ContainsFunc(names, func(n string) bool { return column(header, n) < 0 })
	}
}

func column(header []string, name string) int {
	return slices.IndexFunc(header, func(h string) bool { return strings.EqualFold(h, name) })
}

// named splits a row into its first cell and the others by column. A name may contain the bars that separate cells:
// cells beyond the columns belong to it.
func named(header, cells []string) (name string, cell func(column string) (float64, bool)) {
	extra := len(cells) - len(header)
	if extra < 0 {
		return "", func(string) (float64, bool) { return 0, false }
	}
	name = strings.Trim(strings.Join(cells[:1+extra], "|"), "`")
	return name, func(c string) (float64, bool) {
		i := column(header, c)
		if i < 1 {
			return 0, false
		}
		v, err := strconv.ParseFloat(strings.ReplaceAll(cells[i+extra], ",", ""), 64)
		return v, err == nil && usable(&v)
	}
}

// otherOperators stands for operators whose name is not of a form that is shown.
const otherOperators = "(other operators)"

func (d *Data) readOperators(in *file.Input, b []byte) {
	eachCells(in, b, func(header, cells []string) bool {
		name, cell := named(header, cells)
		total, ok1 := cell("total_time_ms")
		calls, ok2 := cell("calls")
		if name == "" || !ok1 || !ok2 || len(d.Operators) >= maxRows {
			return false
		}
		cuda, _ := cell("cuda_time_ms")
		if !operatorRef().MatchString(name) {
			name = otherOperators
		}
		same := func(o Operator) bool { return name == otherOperators && o.Name == name }
		o := lists.Entry(&d.Operators, same, Operator{Name: name})
		o.Total, o.CUDA, o.Calls = o.Total+total*1e6, o.CUDA+cuda*1e6, o.Calls+int64(calls)
		return true
	})
}

// maxName bounds a kernel name. The longest real ones have a few thousand bytes.
const maxName = 16 << 10

func (d *Data) readKernels(in *file.Input, b []byte) {
	eachCells(in, b, func(header, cells []string) bool {
		name, cell := named(header, cells)
		total, ok1 := cell("total_ms")
		calls, ok2 := cell("calls")
		if name == "" || !ok1 || !ok2 || len(name) > maxName || len(d.Kernels) >= maxRows {
			return false
		}
		k := Kernel{Name: name, Total: total * 1e6, Calls: int64(calls)}
		if mean, ok := cell("mean_ms"); ok {
			k.Mean = mean * 1e6
		} else if calls > 0 {
			k.Mean = k.Total / calls
		}
		d.Kernels = append(d.Kernels, k)
		return true
	})
}

func (d *Data) readRegions(in *file.Input, b []byte) {
	var f struct {
		Regions []struct {
			Name    string   `json:"name"`
			Total   *float64 `json:"total_ms"`
			Kernels *float64 `json:"kernel_count"`
		} `json:"regions"`
	}
	if json.Unmarshal(file.WithoutNaN(b), &f) != nil {
		d.bad(in)
		return
	}
	for i, r := range f.Regions {
		in.Tally.Records++
		if !usable(r.Total) || !usable(r.Kernels) || i >= maxRows {
			in.Tally.Unknown++
			continue
		}
		in.Tally.Understood++
		name, parent, depth := regionName(r.Name, len(d.Regions)+1)
		d.Regions = append(d.Regions, Region{name, parent, depth, *r.Total * 1e6, int64(*r.Kernels)})
	}
}

// regionName is the name where it is made of plain words, else a number; a region A::B is inside A.
func regionName(s string, n int) (name, parent string, depth int64) {
	parts := strings.Split(s, "::")
	odd := func(p string) bool { return !regionPart().MatchString(p) }
	if len(parts) > 16 || slices.ContainsFunc(parts, odd) {
		return "region " + strconv.Itoa(n), "", 0
	}
	return s, strings.Join(parts[:len(parts)-1], "::"), int64(len(parts) - 1)
}
