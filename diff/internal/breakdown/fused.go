package breakdown

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// fused are the rows of an attribution in which kernels that another replaced in some places of the step are a row of
// their own with it, or one that others replaced. What else they run stays in their own rows.
type fused struct {
	rows   split
	of     map[string]*comparison.Kernel // by id of their row
	places map[string]*fusion            // likewise
	row    [2]map[string]int             // place in rows, by side and name
	taken  map[string]bool               // ids of rows that lost runs to a replacement
}

type fusion struct {
	names   [2][]string // by side, in order
	longest [2]string
	at      []int64 // positions at which it begins
}

// split are the rows of the attribution, with a row for each replacement.
func (x *Parts) split() split { return x.fuse().rows }

func (x *Parts) fuse() *fused {
	if x.fused != nil {
		return x.fused
	}
	f := &fused{rows: slices.Clone(x.C.Attribution.Rows), of: map[string]*comparison.Kernel{},
		places: map[string]*fusion{}, row: [2]map[string]int{{}, {}}, taken: map[string]bool{}}
	x.fused = f
	for i := range x.C.Kernels {
		f.of[kernelID(&x.C.Kernels[i])] = &x.C.Kernels[i]
	}
	for i := range f.rows {
		k := f.of[f.rows[i].ID]
		if k == nil || f.rows[i].Kind != comparison.KindKernel {
			continue
		}
		for at, name := range []*string{k.BaseName, k.HeadName} {
			if name != nil {
				f.row[at][*name] = i
			}
		}
	}
	if o := x.C.Step; o != nil {
		from := 0
		for i := range o.Rows {
			if !f.changed(o, &o.Rows[i]) {
				f.add(o, o.Rows[from:i])
				from = i + 1
			}
		}
	}
	return f
}

// changed reports whether another compute kernel, or none, runs at a position.
func (f *fused) changed(o *comparison.Step, r *comparison.StepRow) bool {
	names := namesAt(o, r)
	k := f.of[names[0]+" → "+names[1]]
	return r.Kind != comparison.RowFolded && names[0] != names[1] && r.Category != side.Communication &&
		(k == nil || !pairing.Renamed(k))
}

// namesAt are the kernels at a position, by side; empty if there is none.
func namesAt(o *comparison.Step, r *comparison.StepRow) (names [2]string) {
	if r.BasePosition != nil {
		names[0] = o.NameOf(r.Name)
	}
	if r.HeadPosition != nil {
		names[1] = o.NameOf(r.Name)
	}
	if r.HeadName != nil {
		names[1] = o.NameOf(r.HeadName)
	}
	return names
}

// add takes the kernels of neighbouring positions out of their rows, if they replaced each other and are no pair.
func (f *fused) add(o *comparison.Step, rows []comparison.StepRow) {
	var x fusion
	var longest, alone [2]float64
	for i := range rows {
		for at, name := range namesAt(o, &rows[i]) {
			ns := [2]float64{rows[i].BaseKernel, rows[i].HeadKernel}[at]
			if name == "" {
				continue
			}
			x.names[at] = append(x.names[at], name)
			alone[at] += ns
			if ns >= longest[at] {
				longest[at], x.longest[at] = ns, name
			}
		}
	}
	b, h := x.names[0], x.names[1]
	if min(distinct(b), distinct(h)) != 1 || len(b)+len(h) == 2 && f.of[b[0]+" → "+h[0]] != nil {
		return // several kernels on both sides may be a replacement and a new one
	}
	id := fmt.Sprintf("%q", x.names)
	if f.places[id] == nil {
		f.places[id], f.row[0][id] = &x, len(f.rows)
		f.rows = append(f.rows, comparison.AttributionRow{ID: id, Kind: comparison.KindKernel})
	}
	at := cmp.Or(rows[0].BasePosition, rows[0].HeadPosition)
	f.places[id].at = append(f.places[id].at, comparison.Value(at))
	move(&f.rows[f.row[0][id]], alone[0], alone[1])
	for i := range rows {
		r, names := &rows[i], namesAt(o, &rows[i])
		f.take(0, names[0], r.BaseKernel, r.BaseKernel+r.BaseHidden)
		f.take(1, names[1], r.HeadKernel, r.HeadKernel+r.HeadHidden)
	}
}

func distinct(names []string) int {
	return len(slices.Compact(slices.Sorted(slices.Values(names))))
}

func move(r *comparison.AttributionRow, base, head float64) {
	r.Base, r.Head, r.Delta = r.Base+base, r.Head+head, r.Delta+head-base
}

// take takes one run of a kernel on a side out of its row and its category's: the time in which it runs alone, and all.
func (f *fused) take(at int, name string, alone, time float64) {
	i, ok := f.row[at][name]
	if !ok {
		return // it is among the others
	}
	r, k := &f.rows[i], *f.of[f.rows[i].ID]
	ns, runs, base, head := &k.Base, &k.BaseCount, -alone, 0.0
	if at == 1 {
		ns, runs, base, head = &k.Head, &k.HeadCount, 0, -alone
	}
	move(r, base, head)
	for j := range f.rows {
		if c := &f.rows[j]; c.Kind == comparison.KindCategory && c.ID == r.Category {
			move(c, base, head)
			c.CountEffect = nil
		}
	}
	*ns, *runs = new(comparison.Value(*ns)-time), new(comparison.Value(*runs)-1)
	if comparison.Value(*runs) < 0.5 {
		*ns, *runs = nil, nil
	}
	b, h := comparison.Value(k.Base), comparison.Value(k.Head)
	k.Delta = h - b
	k.CountEffect, k.PerCallEffect = pairing.Effects(comparison.Value(k.BaseCount), b, comparison.Value(k.HeadCount), h)
	f.of[r.ID], f.taken[r.ID] = &k, true
}

// cause tells a replacement: 2 kernels, gemm among them, replaced by fused_gemm: 8 × 68.06 → 62.97 µs.
func (x *fusion) cause(r *comparison.AttributionRow, names *kernelNames) comparison.AnswerRow {
	text := func(at int) string {
		if n := len(x.names[at]); distinct(x.names[at]) > 1 {
			return fmt.Sprintf("%d kernels, %s among them", n, names.shown(x.longest[at]))
		}
		return names.shown(x.longest[at])
	}
	what, n := "kernel "+text(0), float64(len(x.at))
	if distinct(x.names[0]) > 1 {
		what = text(0) + ","
	}
	runs := comparison.FromTo(r.Base/n, r.Head/n, report.Nanoseconds)
	return comparison.AnswerRow{Delta: r.Delta, Part: comparison.AnswerKernel, What: what + splitWord + text(1),
		Where: placesText(x.at), With: []string{unit.Format(n, report.Count) + " × " + runs}}
}
