package cmdenv

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
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
	flags, env := AnalysisFlags{}, &Env{Err: io.Discard}
	_, err := flags.Results(t.Context(), env, files[1:2], 0)
	if err == nil || !strings.Contains(err.Error(), "b.json is not valid JSON") || !strings.Contains(err.Error(), "was it cut off?") {
		t.Errorf("error %v", err)
	}
	for range 50 { // two are read at a time, and either may end first
		_, err = flags.Results(t.Context(), env, files, 0)
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
