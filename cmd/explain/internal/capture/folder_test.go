package capture

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// put writes a file of a folder.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files are all files below a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

func claim(t *testing.T, out string, force bool) *Folder {
	t.Helper()
	f, err := NewFolder(out, force)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// refused reports whether an error is one of usage, and says so.
func refused(err error, says string) bool {
	return errors.As(err, new(usage.Error)) && strings.Contains(err.Error(), says)
}

// TestFolderAppearsWhole: a capture moves into its place at once, and one that replaces another leaves nothing of it.
func TestFolderAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	first := claim(t, out, false)
	put(t, first.Stage, "logs/children.json", "[]")
	put(t, first.Stage, "cmd.txt", "1")
	if _, err := os.Stat(out); err == nil {
		t.Error("the folder is there before it is whole")
	}
	if err := first.Done(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "out/cmd.txt", "out/logs/children.json")
	if _, err := NewFolder(out, false); !refused(err, "exists and is not empty") {
		t.Errorf("a folder that is not empty: %v", err)
	}
	second := claim(t, out, true)
	put(t, second.Stage, "env.json", "2")
	if err := second.Done(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "out/env.json")
}

// TestReplacedStaysUntilThen: where a capture cannot take its place, what --force was to replace is there again.
func TestReplacedStaysUntilThen(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	put(t, out, "logs/children.json", "[]")
	f := claim(t, out, true)
	put(t, f.Stage, "trace.nsys-rep", "new")
	if err := f.begin(); err != nil { // and then the capture cannot be moved
		t.Fatal(err)
	}
	if kept, resumable := f.Fail(errors.New("no")); kept != out+".failed" || !resumable {
		t.Errorf("kept in %q, %v", kept, resumable)
	}
	wantFiles(t, dir, "out/logs/children.json", "out.failed/status.json", "out.failed/trace.nsys-rep")
}

// TestStatusStaysWhereItCannotBeWritten: a status that cannot be written leaves the one that was there.
func TestStatusStaysWhereItCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	if err := (&Status{Out: "first"}).Write(dir); err != nil {
		t.Fatal(err)
	}
	put(t, dir, statusFile+".new/in", "the way")
	if err := (&Status{Out: "second"}).Write(dir); err == nil {
		t.Error("a folder was written over")
	}
	if s, err := ReadStatus(dir); err != nil || s.Out != "first" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestFolderIsClaimed: the second who wants a folder is refused before it records, as long as the first lives.
func TestFolderIsClaimed(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	first := claim(t, out, false)
	if _, err := NewFolder(out, true); !refused(err, "is being written by another explain capture") {
		t.Errorf("the second is not refused: %v", err)
	}
	put(t, first.Stage, "env.json", "1")
	if err := first.Done(); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, "out/env.json")
}

// TestRepeatsAreKept: what completed is in its place when a later capture fails, and the recording of that one is kept.
func TestRepeatsAreKept(t *testing.T) {
	dir := t.TempDir()
	f := claim(t, filepath.Join(dir, "out"), false)
	put(t, f.Stage, "run-1/trace.sqlite", "1")
	if err := f.Keep("run-1"); err != nil {
		t.Fatal(err)
	}
	put(t, f.Stage, "run-2/trace.nsys-rep", "2")
	put(t, f.Stage, "run-2/logs/nsys-export.log", "no")
	kept, resumable := f.Fail(errors.New("no --api-key=s3cr3t"))
	if kept != filepath.Join(dir, "out.failed") || !resumable {
		t.Errorf("kept in %q, %v", kept, resumable)
	}
	wantFiles(t, dir, "out/run-1/trace.sqlite", "out.failed/run-2/logs/nsys-export.log", "out.failed/run-2/trace.nsys-rep", "out.failed/status.json")
	if s, err := ReadStatus(kept); err != nil || s.Out != "out" || s.Error != "no --api-key=[redacted]" {
		t.Errorf("status %+v, %v", s, err)
	}
}

// TestRecordingsAreNotReplaced: a failed capture takes the place of the logs of another one, never of a recording or of
// somebody's folder.
func TestRecordingsAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	fail := func(files ...string) string {
		f := claim(t, out, false)
		for _, name := range files {
			put(t, f.Stage, name, "x")
		}
		kept, _ := f.Fail(errors.New("no"))
		name, _ := filepath.Rel(dir, kept)
		return name
	}
	for _, x := range []struct {
		files []string
		want  string
	}{
		{[]string{"logs/a.log", "logs/children.json", "cmd.txt"}, "out.failed"},
		{[]string{"trace.qdstrm", "logs/children.json"}, "out.failed"}, // logs alone were there
		{[]string{"trace.qdstrm", "logs/children.json"}, "out.failed-2"},
		{[]string{"logs/b.log", "logs/children.json"}, "out.failed-3"},
	} {
		if got := fail(x.files...); got != x.want {
			t.Errorf("%q: kept in %s, want %s", x.files, got, x.want)
		}
	}
	if got := fail("cmd.txt"); got != "." && got != "" {
		t.Errorf("neither logs nor a recording, and kept in %s", got)
	}
	if err := os.RemoveAll(out + ".failed"); err != nil {
		t.Fatal(err)
	}
	put(t, out+".failed", "thesis.tex", "precious")
	if got := fail("logs/c.log"); got != "out.failed-3" {
		t.Errorf("kept in %s", got)
	}
	if _, err := os.Stat(filepath.Join(out+".failed", "thesis.tex")); err != nil {
		t.Error(err)
	}
}

// TestForceReplacesCapturesAlone: a folder that holds anything else is refused, and stays.
func TestForceReplacesCapturesAlone(t *testing.T) {
	for _, x := range []struct {
		files []string
		alien string // in the error; empty: it may be replaced
	}{
		{[]string{"logs/children.json", "trace.sqlite", "report.json", "tables/kernels.csv"}, ""},
		{[]string{"run-1/logs/children.json", "run-1/cmd.txt", "comparison/comparison.md"}, ""},
		{[]string{"src/thesis.tex"}, "(src)"},
		{[]string{"logs/children.json", "notes.md"}, "(notes.md)"},
		{[]string{"run-1/logs/children.json", "run-2/logs/children.json", "run-2/thesis.tex"}, "(run-2/thesis.tex)"},
		{[]string{"logs/server.log", "tables/users.csv"}, "(no capture)"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		for _, name := range x.files {
			put(t, out, name, "x")
		}
		f, err := NewFolder(out, true)
		if x.alien == "" {
			if err != nil {
				t.Errorf("%q: %v", x.files, err)
			} else if f.Fail(errors.New("no")); len(files(t, out)) != len(x.files) {
				t.Errorf("%q: what was to be replaced is gone though nothing took its place", x.files)
			}
			continue
		}
		if !refused(err, "holds files that explain did not write") || !strings.Contains(err.Error(), x.alien) {
			t.Errorf("%q: %v, want %s", x.files, err, x.alien)
		}
		if len(files(t, out)) != len(x.files) {
			t.Errorf("%q: something is gone", x.files)
		}
	}
}

// TestDeadOwner: the scratch folder of an explain that is dead is no claim. What it recorded is kept, and said.
func TestDeadOwner(t *testing.T) {
	if processOf(os.Getpid()).start == 0 {
		t.Skip("there is no /proc here, by which a process is known")
	}
	dir := t.TempDir()
	host, _ := os.Hostname()
	dead := owner{PID: os.Getpid(), Start: processOf(os.Getpid()).start - 1, Host: host} // its pid is somebody else's now
	for name, file := range map[string]string{"out": "trace.nsys-rep", "other": "cmd.txt"} {
		stage := filepath.Join(dir, scratchPrefix+name)
		put(t, stage, file, "x")
		if err := dead.write(stage); err != nil {
			t.Fatal(err)
		}
	}
	far := filepath.Join(dir, scratchPrefix+"far")
	put(t, far, "trace.nsys-rep", "x")
	if err := (owner{PID: 1 << 22, Start: 1, Host: host + "-other"}).write(far); err != nil {
		t.Fatal(err)
	}
	f := claim(t, filepath.Join(dir, "out"), false)
	if len(f.Notes) != 1 || !strings.Contains(f.Notes[0], "explain capture resume "+filepath.Join(dir, "out.failed")) {
		t.Errorf("notes %q", f.Notes)
	}
	wantFiles(t, dir, scratchPrefix+"far/owner.json", scratchPrefix+"far/trace.nsys-rep", scratchPrefix+"out/owner.json",
		"out.failed/status.json", "out.failed/trace.nsys-rep")
}

// TestWhatCameMeanwhileStays: what the program writes where its capture will lie is never removed.
func TestWhatCameMeanwhileStays(t *testing.T) {
	dir := t.TempDir()
	f := claim(t, filepath.Join(dir, "a"), false)
	put(t, f.Stage, "trace.nsys-rep", "new")
	put(t, dir, "a", "the program's output")
	if err := f.Done(); err == nil {
		t.Error("a file was replaced")
	}
	f.Fail(errors.New("no"))
	put(t, dir, "b/logs/children.json", "[]")
	f = claim(t, filepath.Join(dir, "b"), true)
	put(t, f.Stage, "trace.nsys-rep", "new")
	put(t, dir, "b/results.csv", "the program's output")
	if err := f.Done(); err == nil || !strings.Contains(err.Error(), "holds files that explain did not write") {
		t.Error(err)
	}
	f.Fail(errors.New("no"))
	wantFiles(t, dir, "a", "a.failed/status.json", "a.failed/trace.nsys-rep", "b/logs/children.json", "b/results.csv",
		"b.failed/status.json", "b.failed/trace.nsys-rep")
}

// TestContainersKeepTheirClaims: an owner in another container has another's pids, whatever its host is called.
func TestContainersKeepTheirClaims(t *testing.T) {
	dir := t.TempDir()
	other := thisProcess()
	other.PID, other.Start, other.Space = 1, 1, "pid:[1]"
	if err := os.Mkdir(filepath.Join(dir, ".explain-rank0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := other.write(filepath.Join(dir, ".explain-rank0")); err != nil {
		t.Fatal(err)
	}
	claim(t, filepath.Join(dir, "rank1"), false)
	wantFiles(t, dir, ".explain-rank0/owner.json", ".explain-rank1/owner.json")
	if _, err := NewFolder(filepath.Join(dir, "rank0"), false); !refused(err, "is being written by another explain capture") {
		t.Error(err)
	}
}

// TestRescueMeetsAClaim: captures that begin at once, after one was killed, rescue its folder once, and not the one
// that takes its place.
func TestRescueMeetsAClaim(t *testing.T) {
	dead := thisProcess()
	dead.PID, dead.Start = 1, 1
	for range 30 {
		dir := t.TempDir()
		put(t, dir, ".explain-0/logs/none", "")
		if err := dead.write(filepath.Join(dir, ".explain-0")); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				if _, err := NewFolder(filepath.Join(dir, strconv.Itoa(n)), false); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := len(files(t, dir)); got != 8 {
			t.Fatalf("%d of 8 have their folders", got)
		}
	}
}

// TestFolderWithBrackets: the name of a folder is no pattern. What nsys recorded of several ranks is found in it, and
// kept.
func TestFolderWithBrackets(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "run[1]"), false)
	put(t, f.Stage, "trace.1.nsys-rep", "recorded")
	kept, resumable := f.Fail(errors.New("no importer"))
	if !resumable {
		t.Fatalf("the recording is gone: kept %q", kept)
	}
	wantFiles(t, kept, "status.json", "trace.1.nsys-rep")
}

// What cannot be listed may hold a recording: here a file in the folder's place, as a disk that fails answers.
func TestFoldersThatCannotBeListedAreKept(t *testing.T) {
	f := claim(t, filepath.Join(t.TempDir(), "run"), false)
	if err := errors.Join(os.RemoveAll(f.Stage), os.WriteFile(f.Stage, []byte("recorded"), 0o600)); err != nil {
		t.Fatal(err)
	}
	kept, resumable := f.Fail(errors.New("the disk fails"))
	if b, err := os.ReadFile(kept); !resumable || err != nil || string(b) != "recorded" {
		t.Errorf("kept %q, %v: %q, %v", kept, resumable, b, err)
	}
}
