// Package loadmetrics reads what explain load measured on the client's side of a server.
package loadmetrics

import (
	"context"
	"fmt"
	"regexp"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
)

// Data is the load that the report describes.
type Data struct {
	Result *loadfile.Result
	Name   string // of its file
	others []string
}

var start = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"explain\.load/`)

// Is reports whether a file that starts with head, and is named name, is of this kind.
func Is(_ string, head []byte) bool { return start.Match(head) }

// Read reads the files. Percentiles of two runs cannot be made into one, so the report describes the first; the others
// are read, and named in a warning.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	for i := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := read(&files[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files[i].Name, err)
		}
		t := files[i].Tally
		t.Format, t.Version = loadfile.SchemaID, r.Tool.Version
		t.Records, t.Known = r.Counts.Sent, r.Counts.Cancelled
		t.Understood = t.Records - t.Known
		if d.Result != nil {
			d.others = append(d.others, files[i].Name)
			continue
		}
		d.Result, d.Name = r, files[i].Name
	}
	return d, nil
}

func read(in *file.Input) (*loadfile.Result, error) {
	f, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return loadfile.Read(f)
}

// Warnings are what limits trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	if len(d.others) == 0 {
		return nil
	}
	return []report.Warning{{Code: "load_several",
		Text: fmt.Sprintf("%d results of explain load were given, and percentiles of several runs do not add up: the report describes %s. Make a report of each, and compare them with explain diff.", 1+len(d.others), d.Name)}}
}

// Environment fills in what the files state and e does not yet.
func (d *Data) Environment(e *report.Environment) {
	if e.Model == nil {
		e.Model = d.Result.Model
	}
	if w := &d.Result.Workload; w.Fingerprint != "" {
		text := w.Text()
		e.Load = &text
	}
}
