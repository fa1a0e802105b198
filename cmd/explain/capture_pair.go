package main

import (
	"fmt"
	"path/filepath"
)

// compare compares the captures of both sides, writes comparison/ into the folder, and prints the comparison. The verdict is the exit
// code of explain diff, as an error.
func (r *recording) compare(stage string) (verdict, err error) {
	d := &r.diff
	for i := 1; i <= r.repeat; i++ {
		d.base = append(d.base, filepath.Join(stage, r.subfolder(0, i)))
		d.head = append(d.head, filepath.Join(stage, r.subfolder(1, i)))
	}
	d.quiet = r.quiet
	base, head, err := d.sides(nil)
	if err != nil {
		return nil, err
	}
	opt, err := d.compareOptions(r.cmd, r.w)
	if err != nil {
		return nil, err
	}
	c, err := d.compare(r.cmd, r.w, base, head, opt)
	if err != nil {
		return nil, fmt.Errorf("the captures cannot be compared: %w", err)
	}
	if err := writeFolder(r.hard, filepath.Join(stage, "comparison"), comparisonFolder(c)); err != nil {
		return nil, err
	}
	if err := d.print(r.w, c); err != nil {
		return nil, err
	}
	if code := verdictCode(c.Verdict); code != exitOK {
		return exitCode(code), nil
	}
	return nil, nil
}
