package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// text writes a text.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// names are what lies in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, e := range list {
		s = append(s, e.Name())
	}
	return strings.Join(s, " ")
}

func TestFileThatFailsLeavesWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "a.txt")
	if err := File(path, Any, text("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no more space")
	err := File(path, Any, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return broken })
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "first" {
		t.Errorf("%q, %v", b, err)
	}
	if got := names(t, filepath.Dir(path)); got != "a.txt" {
		t.Errorf("left behind: %s", got)
	}
}

func TestFolderIsWholeOrNotThere(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	broken := errors.New("no more space")
	err := Folder(t.Context(), dir, []Item{
		{"a.txt", text("a")}, {"b.txt", func(io.Writer) error { return broken }}})
	if !errors.Is(err, broken) || names(t, parent) != "" {
		t.Errorf("%v, left %q", err, names(t, parent))
	}
	if err := Folder(t.Context(), dir, []Item{{"a.txt", text("a")}, {"t/b.txt", text("b")}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Folder(t.Context(), dir, []Item{{"a.txt", text("new")}}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	if got := names(t, dir); got != "a.txt mine.txt t" {
		t.Errorf("holds %s", got)
	}
}

func TestFolderReplacesNoFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "b.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Folder(t.Context(), dir, []Item{{"a.txt", text("new")}, {"b.txt", text("b")}})
	if err == nil || !strings.Contains(err.Error(), "b.txt is not a file") {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "old" {
		t.Errorf("a.txt was replaced by %q", b)
	}
}

// TestFilesThatCannotMoveAreTakenBack: where one file of several cannot take its place, the others leave theirs.
func TestFilesThatCannotMoveAreTakenBack(t *testing.T) {
	scratch, dir := t.TempDir(), t.TempDir()
	for path, said := range map[string]string{filepath.Join(dir, "a.txt"): "old", filepath.Join(scratch, "a.txt"): "new",
		filepath.Join(scratch, "b.txt"): "new", filepath.Join(scratch, "c.txt"): "new"} {
		if err := os.WriteFile(path, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "c.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := moveIn(scratch, dir, []Item{{"a.txt", nil}, {"b.txt", nil}, {"c.txt", nil}}); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "old" || names(t, dir) != "a.txt c.txt" {
		t.Errorf("a.txt holds %q of %s", b, names(t, dir))
	}
}

// TestFoldersOfOneParentKeepApart: a writer whose scratch folder became its folder removes no other writer's.
func TestFoldersOfOneParentKeepApart(t *testing.T) {
	parent := t.TempDir()
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			dir := filepath.Join(parent, strconv.Itoa(n))
			if err := Folder(t.Context(), dir, []Item{{"a.txt", text("a")}, {"b.txt", text("b")}, {"c/d.txt", text("d")}}); err != nil {
				t.Error(err)
			}
			if got := names(t, dir); got != "a.txt b.txt c" {
				t.Errorf("folder %d has %q", n, got)
			}
		})
	}
	all.Wait()
	for n := range 100 {
		if got := names(t, filepath.Join(parent, strconv.Itoa(n))); got != "a.txt b.txt c" {
			t.Errorf("in the end folder %d has %q", n, got)
		}
	}
}
