package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpen: the page that was written is opened; a machine without a browser gets its name and no failure; without --out
// there is no page.
func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args   []string
		broken error
		code   int
		opened string
		errs   string
	}{
		{[]string{"../../testdata/tiny.sqlite", "--quiet", "--open", "--out", dir}, nil, exitOK, "report.html", ""},
		{[]string{"diff", "../../testdata/tiny.sqlite", "../../testdata/tiny.sqlite", "--quiet", "--open", "--out", dir}, nil, exitInconclusive, "diff.html", ""},
		{[]string{"../../testdata/tiny.sqlite", "--quiet", "--open", "--out", dir}, errors.New("xdg-open is not installed"), exitOK, "report.html", "cannot open a browser (xdg-open is not installed); the page is "},
		{[]string{"../../testdata/tiny.sqlite", "--open"}, nil, exitUsage, "", "--open shows the page that --out writes: name a folder"},
	} {
		opened := ""
		var out, errs bytes.Buffer
		w := &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Open: func(path string) error {
			opened = filepath.Base(path)
			if !filepath.IsAbs(path) {
				t.Errorf("%s is not absolute", path)
			}
			return c.broken
		}}
		if code := run(context.Background(), c.args, w); code != c.code || opened != c.opened || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%v: exit %d, opened %q, said %q", c.args, code, opened, errs.String())
		}
	}
}
