// Package ncu reads Nsight Compute's CSV exports: the raw page (wide, a row per launch) and the details page (long, a
// row per launch and metric), of all versions, with or without ncu's messages around them.
package ncu

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Data is the content of a set of Nsight Compute CSV files.
type Data struct {
	Launches []*Launch // in the order of the files; one per launch, however many pages hold it
	Kernels  []*Kernel // the one with most time first
	Devices  []*Device // that a raw page describes, by number
	Pages    int64     // launches that were found on more than one page

	warnings report.Warnings
}

// Is reports whether a file that starts with head, and is named name, is of this kind: it has the header of a page, or
// only ncu's message that there was nothing to export.
func Is(_ string, head []byte) bool {
	marks := []string{"==", "__", "Metric"}
	if !slices.ContainsFunc(marks, func(s string) bool { return bytes.Contains(head, []byte(s)) }) {
		return false
	}
	said, others := 0, 0
	for l := file.NewLines(bytes.NewReader(head)); ; {
		text, _, ok := l.Next()
		if !ok {
			return said > others
		}
		line := strings.TrimSpace(valid(text))
		switch {
		case line == "":
		case strings.HasPrefix(line, "==PROF== "), strings.HasPrefix(line, "==ERROR== "),
			strings.HasPrefix(line, "==WARNING== "):
			said++
		case parseHeader(line) != nil:
			return true
		default:
			others++
		}
	}
}

// IsHeader reports whether a page begins at a line. It may do so anywhere in a file: if the profiled program printed
// much first, the start of the file does not show its kind.
func IsHeader(line []byte) bool { return parseHeader(strings.TrimSpace(valid(line))) != nil }

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	m := &merger{at: map[key][]*Launch{}, canonical: map[string]string{}}
	gpus := map[int]*Device{}
	for i := range files {
		in := &files[i]
		odd := &oddities{units: map[Field]int64{}}
		s, err := styleOf(ctx, in, odd)
		if err != nil {
			return nil, err
		}
		p := &parser{in: in, style: s, odd: odd, folder: folderOf(in.Path), room: maxLaunches - len(m.launches),
			gpus: gpus, layout: map[layout]bool{}}
		r := reader{in: in, tally: in.Tally, odd: odd}
		if err := r.each(ctx, p.row); err != nil {
			return nil, err
		}
		m.add(p.launches)
		in.Tally.Format = p.format(s)
		d.warn(in.Name, odd, r.header != nil, p.page != nil)
	}
	d.Launches, d.Pages = m.finish()
	d.Devices = lists.Map(slices.Sorted(maps.Keys(gpus)), func(id int) *Device { return gpus[id] })
	d.group()
	return d, nil
}

// format says which pages a file holds.
func (p *parser) format(s style) string {
	var list []string
	if p.layout[raw] {
		list = append(list, "raw page")
	}
	if p.layout[details] {
		list = append(list, "details page")
	}
	text := strings.Join(list, " and ")
	if s == comma && text != "" {
		text += ", decimal commas"
	}
	return text
}

// warn lists the anomalies of a file. No text of the file itself is repeated.
func (d *Data) warn(name string, o *oddities, header, rows bool) {
	say := func(is bool, code, text string) { d.warnings.If(is, code, "%s: %s", name, text) }
	say(o.permission, "ncu_permission", "Nsight Compute was not allowed to read the GPU's counters (ERR_NVGPUCTRPERM): "+
		"run it as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0")
	say(o.noKernels || header && !rows, "ncu_no_kernels", "no kernel was profiled: check --kernel-name, --launch-skip and "+
		"--nvtx-include; explain report --ncu-targets writes a filter that fits a trace")
	say(o.errors > 0 && !o.permission, "ncu_errors", "Nsight Compute reports "+wording.Count(o.errors, "error"))
	say(o.summary > 0, "ncu_summary_page", "the page was made with --print-summary, which has no launches: export it with "+
		"ncu --import REPORT --csv --page raw")
	say(o.noUnits, "ncu_no_units", "the raw page has no units row: durations and bytes are unknown; percentages are read")
	const unit = " in a unit that explain does not know, left out"
	for _, f := range slices.Sorted(maps.Keys(o.units)) {
		say(true, "ncu_units", wording.Count(o.units[f], "value")+" of "+f.Column()+unit)
	}
	say(o.counters > 0, "ncu_units", wording.Count(o.counters, "count")+" of operations"+unit)
	say(o.against > 0, "ncu_numbers", wording.Count(o.against, "number")+
		" whose decimal comma or point contradicts the rest of the file: they are left out")
	say(o.broken > 0, "ncu_broken", wording.Count(o.broken, "row")+
		" cut in the middle: was the file cut, or did two programs write into it?")
	say(o.long > 0, "ncu_long_lines", wording.Count(o.long, "line")+" longer than 1 MiB: only the beginning was read")
	say(o.tooMany > 0, "ncu_too_many", fmt.Sprintf("more than %d launches: those after them were not read", maxLaunches))
	say(o.damaged != nil, "ncu_damaged", "the file is damaged and was read up to there")
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning { return d.warnings }

// Environment fills in the devices if no trace names them.
func (d *Data) Environment(e *report.Environment) {
	if len(e.GPUs) > 0 {
		return
	}
	if len(d.Devices) > 0 {
		e.GPUs = lists.Map(d.Devices, (*Device).model)
		return
	}
	cc := map[int]string{}
	for _, l := range d.Launches {
		if l.Device >= 0 && cc[l.Device] == "" {
			cc[l.Device] = l.CC
		}
	}
	for _, id := range slices.Sorted(maps.Keys(cc)) {
		e.GPUs = append(e.GPUs, (&Device{ID: id, CC: cc[id]}).model())
	}
}
