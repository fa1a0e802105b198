package trace

import (
	"context"

	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// Description is the schema of a capture: names and numbers, no content.
type Description struct {
	Used   []TableStat // which table plays a role, in a fixed order of these; nothing is counted
	Tables []source.TableShape
}

// Describe opens a file like Open and describes what it holds.
func Describe(ctx context.Context, path string, opt FileOptions) (*Description, error) {
	in := source.NewInput(ctx, path, opt)
	defer in.Cleanup()
	if err := in.Resolve(); err != nil {
		return nil, err
	}
	src, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	tables, err := src.Tables()
	if err != nil {
		return nil, in.Damaged(err)
	}
	d := &Description{}
	found := probe(tables)
	for _, spec := range roles {
		if t, ok := found[spec.role]; ok {
			d.Used = append(d.Used, TableStat{Role: spec.role, Name: t.Name})
		}
	}
	for _, t := range tables {
		shape, err := src.Describe(t)
		if err != nil {
			return nil, in.Damaged(err)
		}
		d.Tables = append(d.Tables, shape)
	}
	return d, nil
}
