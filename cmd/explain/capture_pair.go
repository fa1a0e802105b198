package main

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// compare compares the captures of a pair, as explain diff does.
func (f *captureFlags) compare(cmd *cobra.Command, e *env, baseDirs, headDirs []string) (
	*comparison.Comparison, error) {
	d := &diffFlags{analysis: analysisFlags{Quiet: f.Quiet}, rules: f.rules, top: diff.DefaultTop,
		base: baseDirs, head: headDirs}
	base, head, err := d.sides(nil)
	if err != nil {
		return nil, err
	}
	opt, err := d.compareOptions(cmd, e)
	if err != nil {
		return nil, err
	}
	return d.compare(cmd, e, base, head, opt)
}
