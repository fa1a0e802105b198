package main

import (
	"fmt"
	"path/filepath"

	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// compare compares the captures of both sides and writes comparison/ into the folder.
func (r *recording) compare(stage string) (*comparison.Comparison, error) {
	d := &diffFlags{analysis: analysisFlags{quiet: r.quiet}, rules: r.rules, top: diff.DefaultTop}
	for i := 1; i <= r.repeat; i++ {
		d.base = append(d.base, filepath.Join(stage, r.subfolder(0, i)))
		d.head = append(d.head, filepath.Join(stage, r.subfolder(1, i)))
	}
	base, head, err := d.sides(nil)
	if err != nil {
		return nil, err
	}
	opt, err := d.compareOptions(r.cmd, r.env)
	if err != nil {
		return nil, err
	}
	c, err := d.compare(r.cmd, r.env, base, head, opt)
	if err != nil {
		return nil, fmt.Errorf("the captures cannot be compared: %w", err)
	}
	return c, output.Write(r.hard, filepath.Join(stage, "comparison"), output.Comparison(c))
}
