package cmdenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
)

// The error that is told is that of the input that is wrong, not of those that were cancelled because of it.
func TestTheFirstErrorIsTold(t *testing.T) {
	dir := t.TempDir()
	var files []input.File
	for _, name := range []string{"a.json", "b.json", "c.json"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"schema": "explain.report`), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, input.File{Kind: input.Report, Path: path})
	}
	_, err := reportsOf(t.Context(), files[1:2], analyze.Options{}, 0, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "b.json is not valid JSON") || !strings.Contains(err.Error(), "was it cut off?") {
		t.Errorf("error %v", err)
	}
	for range 50 { // two are read at a time, and either may end first
		_, err = reportsOf(t.Context(), files, analyze.Options{}, 0, nil, nil)
		if err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a.json is not valid JSON") {
			t.Fatalf("error %v", err)
		}
	}
}

func TestNothingIsReadAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := reportOf(ctx, input.File{Kind: input.Report, Path: "gone.json"}, analyze.Options{}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestRangesOfOneCapture: a training run names its 12 steps of 20 kernels and a last one of 5; without its ranges, steps are found
// in the kernel sequence, the last one not among them. Both captures get the same units, whichever comes first.
func TestRangesOfOneCapture(t *testing.T) {
	write := func(name string, ranges bool) input.File {
		b := tracetest.New()
		th := b.Process(7, "python").Thread(7, "main")
		at := int64(1_000_000)
		for step := range 13 {
			n, start := 20, at
			if step == 12 {
				n = 5
			}
			for k := range n {
				th.Launch(fmt.Sprintf("kernel_%c", 'a'+k), at, at+2_000, tracetest.Kernel{Start: at + 3_000, End: at + 43_000, Place: tracetest.Place{Stream: 7}})
				at += 45_000
			}
			if ranges {
				th.Range(fmt.Sprint("train step ", step), start-500, at-500)
			}
		}
		path := filepath.Join(t.TempDir(), name)
		if err := b.Write(path); err != nil {
			t.Fatal(err)
		}
		return input.File{Kind: input.Trace, Path: path}
	}
	quiet := progress.New(io.Discard, true, false)
	named, bare := write("named.sqlite", true), write("bare.sqlite", false)
	for _, files := range [][]input.File{{named, bare}, {bare, named}, {named, bare, named}} {
		list, err := reportsOf(t.Context(), files, analyze.Options{}, len(files), nil, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range list {
			if u := &r.Report.Unit; u.Kind != "kernel" || u.Groups[0].Count != list[0].Report.Unit.Groups[0].Count || u.Groups[0].Kernels != 20 {
				t.Errorf("%s of %d: units of kind %s, %+v", files[i].Path, len(files), u.Kind, u.Groups)
			}
		}
	}
	list, err := reportsOf(t.Context(), []input.File{named, named}, analyze.Options{}, 2, nil, quiet)
	if err != nil || list[0].Report.Unit.Kind != "nvtx" || list[1].Report.Unit.Kind != "nvtx" {
		t.Errorf("with ranges: %v, %+v", err, list)
	}
}
