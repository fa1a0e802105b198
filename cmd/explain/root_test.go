package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/cmd/explain/internal/help"
)

// commands are all commands that help shows.
func commands(root *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{root}
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "completion" {
			list = append(list, commands(c)...)
		}
	}
	return list
}

// TestFlagsAreExplained: each flag is in a group and has a placeholder with a name, and each command has an example.
func TestFlagsAreExplained(t *testing.T) {
	root := newRoot(&env{Getenv: func(string) string { return "" }})
	all := commands(root)
	if len(all) < 25 {
		t.Fatalf("only %d commands", len(all))
	}
	flags, alone := 0, []string{} // of no group: help lists them first
	for _, cmd := range all {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags++
			placeholder, text := pflag.UnquoteUsage(f)
			switch {
			case f.Hidden:
			case help.Group(f.Name) == "":
				alone = append(alone, cmd.CommandPath()+" --"+f.Name)
			case slices.Contains([]string{"string", "strings", "int", "uint", "float", "duration", "stringArray"}, placeholder):
				t.Errorf("%s --%s %s: name what it takes", cmd.CommandPath(), f.Name, placeholder)
			case len(text) < 10 && f.Name != "help":
				t.Errorf("%s --%s: %q", cmd.CommandPath(), f.Name, text)
			}
		})
	}
	if len(alone)*20 > flags {
		t.Errorf("%d of %d flags are in no group of cmd/explain/internal/help: %q", len(alone), flags, alone)
	}
}

// TestHelpOfEveryCommand: help by both ways, the same, in lines that fit.
func TestHelpOfEveryCommand(t *testing.T) {
	for _, cmd := range commands(newRoot(&env{Getenv: func(string) string { return "" }})) {
		path := strings.Fields(cmd.CommandPath())[1:]
		var texts []string
		for _, args := range [][]string{append([]string{"help"}, path...), append(slices.Clone(path), "--help")} {
			var out, errs bytes.Buffer
			code := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
			if code != exitOK || errs.Len() > 0 || !strings.Contains(out.String(), "\nUsage:\n  explain") {
				t.Errorf("explain %q: exit %d: %s", args, code, errs.String())
			}
			texts = append(texts, out.String())
		}
		if texts[0] != texts[1] {
			t.Errorf("help %s is not %s --help", cmd.Name(), cmd.Name())
		}
	}
}

// TestHelpIsNarrow: no line of any help is wider than 100 columns, and of its prose none is wider than a narrower terminal.
func TestHelpIsNarrow(t *testing.T) {
	lists := [][]string{{"help", "window"}, {"help", "partial"}, {"help", "merge"}}
	for _, cmd := range commands(newRoot(&env{Getenv: func(string) string { return "" }})) {
		lists = append(lists, append([]string{"help", "--all"}, strings.Fields(cmd.CommandPath())[1:]...))
	}
	for _, args := range lists {
		for _, columns := range []string{"", "80"} {
			var out bytes.Buffer
			run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string {
				return map[string]string{"COLUMNS": columns}[name]
			}})
			for line := range strings.Lines(out.String()) {
				n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
				if n > 100 || columns == "80" && n > 80 && line[0] != ' ' {
					t.Errorf("explain %q: %d columns: %s", args, n, line)
				}
			}
		}
	}
}

// TestRootHelpIsShort: what greets a newcomer is at most 45 lines and 14 commands, and all help texts together name at
// most 110 flags.
func TestRootHelpIsShort(t *testing.T) {
	flags := map[string]bool{}
	for _, cmd := range commands(newRoot(&env{Getenv: func(string) string { return "" }})) {
		var out bytes.Buffer
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		if code := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}); code != exitOK {
			t.Fatalf("%q: exit %d", args, code)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-z0-9-]+)`).FindAllStringSubmatch(out.String(), -1) {
			flags[m[1]] = true
		}
		if cmd.HasParent() {
			continue
		}
		if lines := strings.Count(out.String(), "\n"); lines > 45 {
			t.Errorf("root help has %d lines", lines)
		}
		if n := len(regexp.MustCompile(`(?m)^  [a-z]+ {2,}[A-Z]`).FindAllString(out.String(), -1)); n != 14 {
			t.Errorf("root help lists %d commands", n)
		}
	}
	if len(flags) < 80 || len(flags) > 110 {
		t.Errorf("%d flags in all help texts: %q", len(flags), slices.Sorted(maps.Keys(flags)))
	}
}

// TestDoorsAgree: a flag has one default, whatever command it is given to, and nsys traces the same in the workflows as
// in explain capture.
func TestDoorsAgree(t *testing.T) {
	differ := map[string]string{ // by what the command is for
		"format":  "text, but a policy for policy init",
		"out":     "none, but a folder for demo",
		"branch":  "history list shows all branches",
		"noise":   "a share for bisect, a file elsewhere",
		"ncu":     "a program for capture, files elsewhere",
		"timeout": "of a request for load, of the program for capture",
	}
	defaults, shared := map[string]string{}, 0
	for _, cmd := range commands(newRoot(&env{Getenv: func(string) string { return "" }})) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			was, seen := defaults[f.Name]
			if defaults[f.Name] = f.DefValue; seen {
				shared++
			}
			if seen && was != f.DefValue && differ[f.Name] == "" {
				t.Errorf("--%s is %q for %s, and %q elsewhere", f.Name, f.DefValue, cmd.CommandPath(), was)
			}
		})
	}
	if shared < 100 {
		t.Errorf("%d flags of several commands", shared)
	}
	n := 0
	for _, path := range trackedFiles(t) {
		if !strings.HasPrefix(path, "examples/") && path != ".github/workflows/gate.yml" || strings.HasPrefix(path, "examples/docs/") {
			continue
		}
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`--trace=(\S+) --cuda-graph-trace=`).FindAllSubmatch(text, -1) {
			if n++; string(m[1]) != defaults["trace"] {
				t.Errorf("%s traces %s, explain capture %s", path, m[1], defaults["trace"])
			}
		}
	}
	if n < 7 {
		t.Errorf("%d captures in workflows", n)
	}
}

// noSpace is a device without space.
type noSpace struct{}

func (noSpace) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestNothingPrinted: what only prints fails where it cannot.
func TestNothingPrinted(t *testing.T) {
	for _, args := range []string{"", "--help", "diff --help", "help diff", "doc", "--version", "completion bash", "policy show strict"} {
		var errs bytes.Buffer
		e := quietEnv(new(bytes.Buffer), &errs, "")
		e.Out = noSpace{}
		if code := run(context.Background(), strings.Fields(args), e); code != exitInput || !strings.Contains(errs.String(), "disk is full") {
			t.Errorf("explain %s: exit %d: %s", args, code, errs.String())
		}
	}
}

func TestBuiltFrom(t *testing.T) {
	full := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.time", Value: "2026-11-22T07:00:00Z"},
		{Key: "vcs.modified", Value: "true"}}
	if got := builtFrom(full); got != ", commit 0123456789ab of 2026-11-22 with changes" {
		t.Errorf("%q", got)
	}
	if got := builtFrom(full[:2]); got != ", commit 0123456789ab of 2026-11-22" {
		t.Errorf("%q", got)
	}
	if got := builtFrom(full[:1]); got != "" {
		t.Errorf("%q", got)
	}
}

// TestExitCodesAgree: a command whose help gives exit code 1 or 4 a meaning stands in that row of the page, and nothing else.
func TestExitCodesAgree(t *testing.T) {
	var page, errs bytes.Buffer
	if code := run(context.Background(), []string{"doc", "exit-codes"}, quietEnv(&page, &errs, "")); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, code := range []string{"1", "4"} {
		said := map[string]bool{"load": code == "1"} // load's help says it of --max-failures
		for _, c := range commands(newRoot(&env{Getenv: func(string) string { return "" }})) {
			_, codes, _ := strings.Cut(strings.Join(strings.Fields(c.Long), " "), "Exit codes: ")
			codes, _, _ = strings.Cut(codes, ". ")
			if strings.Contains(codes, ", "+code+" ") {
				said[strings.TrimPrefix(c.CommandPath(), "explain ")] = true
			}
		}
		row := regexp.MustCompile("(?m)^\\| `" + code + "` .*$").FindString(page.String())
		for name := range said {
			if said[name] != strings.Contains(row, "`"+name+"`") {
				t.Errorf("exit code %s of %s: by its help %v; the page has %s", code, name, said[name], row)
			}
			row = strings.ReplaceAll(row, "`"+name+"`", "")
		}
		if left := regexp.MustCompile("`[a-z ]+`[,:]").FindString(row); left != "" {
			t.Errorf("the row of exit code %s names %s, whose help does not", code, left)
		}
	}
}
