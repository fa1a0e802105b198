package guide

import (
	"compress/gzip"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// demoCaptures are base.sqlite and head.sqlite of the repository's testdata.
//
//go:embed demo/base.sqlite.gz demo/head.sqlite.gz
var demoCaptures embed.FS

func newDemo(e *cmdenv.Env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a regression: two captures, their comparison, its page and its comment",
		Long: `demo writes two small synthetic captures of a server, before and after a change that made its decode
step 12 % slower, and shows what explain makes of them:

  base.sqlite, head.sqlite   the captures
  comparison/                what "explain diff --out" writes: diff.html is the page
  gate/                      what "explain gate --out" writes: comment.md is for the pull request

It exits with 0, though the comparison fails.`,
		Example: "  explain demo\n  explain demo --out regression/",
		Args:    cmdenv.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), e, out) },
	}
	cmd.Flags().StringVarP(&out, "out", "o", "demo", "write into this `DIR`")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func demo(ctx context.Context, e *cmdenv.Env, dir string) error {
	page, gate := filepath.Join(dir, "comparison"), filepath.Join(dir, "gate")
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 &&
		!input.Exists(filepath.Join(page, "comparison.json")) {
		return usage.Errorf("%s is there, and explain demo did not write it: name another folder with --out", dir)
	}
	base, head := filepath.Join(dir, "base.sqlite"), filepath.Join(dir, "head.sqlite")
	captures := lists.Map([]string{base, head}, func(path string) atomicfile.Item {
		name := filepath.Base(path)
		return atomicfile.Item{Name: name, Write: func(w io.Writer) error { return demoCapture(w, name) }}
	})
	if err := atomicfile.Folder(ctx, dir, captures); err != nil {
		return err
	}
	alone := *e // as if outside GitHub, so that nothing is posted
	alone.Getenv = func(name string) string {
		if strings.HasPrefix(name, "GITHUB_") {
			return ""
		}
		return e.Getenv(name)
	}
	show := []string{"diff", base, head, "--out", page}
	fmt.Fprintf(e.Out, "$ explain %s\n", render.Visible(strings.Join(show, " ")))
	if code := e.Run(ctx, show, &alone); code != cmdenv.Fail {
		return fmt.Errorf("the demo should fail with exit code 1, and ended with %d", code)
	}
	alone.Out = io.Discard
	if code := e.Run(ctx, []string{"gate", "--base", base, "--head", head, "--out", gate}, &alone); code != cmdenv.Fail {
		return fmt.Errorf("the gate of the demo should fail with exit code 1, and ended with %d", code)
	}
	_, err := fmt.Fprintf(e.Out, "\nThe page:     %s\nThe comment:  %s\nThe head:     explain %s\n", render.Visible(filepath.Join(page, "diff.html")),
		render.Visible(filepath.Join(gate, "comment.md")), render.Visible(head))
	return err
}

// demoCapture unpacks base.sqlite or head.sqlite.
func demoCapture(w io.Writer, name string) error {
	packed, err := demoCaptures.Open("demo/" + name + ".gz")
	if err != nil {
		return err
	}
	rd, err := gzip.NewReader(packed)
	if err == nil {
		_, err = io.Copy(w, rd)
	}
	return err
}
