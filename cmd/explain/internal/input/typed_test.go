package input

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
)

func TestAsTyped(t *testing.T) {
	err := fmt.Errorf("base: %w", &analyze.InputError{File: "trace.sqlite", What: "does not exist"})
	if got := AsTyped(err, "run-1/trace.sqlite"); !strings.Contains(errors.Unwrap(got).Error(), "run-1/trace.sqlite: does not exist") {
		t.Errorf("%v", got)
	}
	if got := AsTyped(&analyze.InputError{File: "inner.sqlite", What: "is cut"}, "run-1/trace.zip"); !strings.HasPrefix(got.Error(), "inner.sqlite: ") {
		t.Errorf("%v", got)
	}
}

func TestPlain(t *testing.T) {
	_, missing := os.ReadFile("no/such.yml")
	_, folder := os.ReadFile(t.TempDir())
	for want, err := range map[string]error{
		"policy: no/such.yml: does not exist; check the path": fmt.Errorf("policy: %w", missing),
		": is a folder; name a file":                          folder,
		"another":                                             errors.New("another"),
	} {
		if got := Plain(err); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSpool(t *testing.T) {
	args := []string{"a.sqlite", "-"}
	remove, err := Spool(t.Context(), strings.NewReader("content"), args)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(args[1]); err != nil || string(b) != "content" || filepath.Base(args[1]) != "stdin" || args[0] != "a.sqlite" {
		t.Errorf("%q, %v, %v", b, err, args)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(args[1])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for want, args := range map[string][]string{"named twice": {"-", "-"}, "nothing came in": {"-"}} {
		remove, err := Spool(t.Context(), strings.NewReader(""), args)
		remove()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
