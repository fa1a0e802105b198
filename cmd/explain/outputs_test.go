//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// writing is a flag, or an argument, that names what a command writes.
type writing struct {
	name   string // command and flag
	args   []string
	out    string // what args name
	folder bool
	main   string // of a folder: the file by which explain knows it for its own; empty: it replaces none
	never  bool   // replaces nothing without --force, not even its own
	inside bool   // a folder gets a file
}

// writings are all of them. OUT in args is where they write.
func writings(t *testing.T, dir, url string) []writing {
	serving, tiny := explaintest.Testdata("serving.sqlite"), explaintest.Testdata("tiny.sqlite")
	base, head := explaintest.Testdata("base.sqlite"), explaintest.Testdata("head.sqlite")
	store, commit, compared := filepath.Join(dir, "history.db"), strings.Repeat("a", 40), filepath.Join(dir, "compared")
	for _, args := range [][]string{{"history", "add", tiny, "--commit", commit, "--store", store}, {"diff", base, head, "--quiet", "--out", compared}} {
		if c := explaintest.Process(t, dir, nil, args...); explaintest.Exit(t, c.Run()) > exitFail {
			t.Fatalf("%q failed", args)
		}
	}
	return []writing{
		{name: "report --perfetto", args: []string{"report", serving, "-q", "--perfetto", "OUT"}},
		{name: "diff --perfetto", args: []string{"diff", base, head, "-q", "--perfetto", "OUT"}},
		{name: "partial --out", args: []string{"partial", tiny, "-q", "--out", "OUT"}},
		{name: "merge --out", args: []string{"merge", tiny, "-q", "--out", "OUT"}, out: "out.partial"},
		{name: "load --out", args: []string{"load", "-q", "--url", url, "--num-requests", "2", "--warmup-requests", "0", "--out", "OUT"}, inside: true},
		{name: "calibrate --out", args: []string{"calibrate", base, head, "-q", "--out", "OUT"}},
		{name: "policy init --noise", args: []string{"policy", "init", base, head, "--noise", "OUT"}},
		{name: "history list --out", args: []string{"history", "list", "--store", store, "--format", "csv", "--out", "OUT"}},
		{name: "history list --out", args: []string{"history", "list", "--store", store, "--format", "ndjson", "--out", "OUT"}},
		{name: "report --ncu-targets", args: []string{"report", tiny, "-q", "--ncu-targets", "OUT"}},
		{name: "scrub", args: []string{"scrub", tiny, "OUT"}, never: true},
		{name: "scrub --out", args: []string{"scrub", tiny, "--out", "OUT"}, never: true},
		{name: "report --out", args: []string{"report", tiny, "-q", "--out", "OUT"}, folder: true, main: "report.json"},
		{name: "diff --out", args: []string{"diff", base, head, "-q", "--out", "OUT"}, folder: true, main: "comparison.json"},
		{name: "merge --out", args: []string{"merge", tiny, "-q", "--out", "OUT"}, folder: true, main: "report.json"},
		{name: "gate --out", args: []string{"gate", "--base", base, "--head", head, "-q", "--out", "OUT"}, folder: true, main: "comparison.json"},
		{name: "gate comment --out", args: []string{"gate", "comment", filepath.Join(compared, "comparison.json"), "--out", "OUT"}, folder: true, main: "comment.md"},
		{name: "history page --out", args: []string{"history", "page", "--store", store, "--out", "OUT"}, folder: true, main: "check.json"},
		{name: "demo --out", args: []string{"demo", "--out", "OUT"}, folder: true},
		{name: "capture --out", args: []string{"capture", "-q", "--no-report", "--out", "OUT", "--", "true"}, folder: true},
	}
}

// elsewhere are flags whose writing other tests hold: they take the same way.
var elsewhere = []string{"capture vllm --out", "capture pair --out", "capture resume --out", "bisect --out"}

// TestOutputs writes every output over everything that can stand in its place. What is not a file of explain's own kind stays what it was,
// and a success has written what it says.
func TestOutputs(t *testing.T) {
	t.Parallel()
	ts := httptest.NewServer(fakeserver.New(fakeserver.Script{Tokens: 2}))
	t.Cleanup(ts.Close)
	list := writings(t, t.TempDir(), ts.URL)
	var flags func(c *cobra.Command)
	flags = func(c *cobra.Command) {
		for _, flag := range []string{"out", "perfetto", "ncu-targets"} {
			name := strings.TrimPrefix(c.CommandPath(), "explain ") + " --" + flag
			known := slices.Contains(elsewhere, name) || slices.ContainsFunc(list, func(w writing) bool { return w.name == name })
			if c.Flags().Lookup(flag) != nil && c.Runnable() && c.HasParent() && !known {
				t.Errorf("no line of this table is about %s", name)
			}
		}
		for _, below := range c.Commands() {
			flags(below)
		}
	}
	flags(newRoot(&env{Getenv: os.Getenv}))
	for _, w := range longtest.Some(list, 3) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			if w.out == "" {
				w.out = "out"
			}
			o := &outputs{writing: w, t: t}
			code, said := o.run(o.dir())
			if code > exitFail {
				t.Fatalf("into an empty folder: exit %d: %s", code, said)
			}
			o.code = code
			if w.folder {
				o.folders()
			} else {
				o.files()
			}
		})
	}
}

type outputs struct {
	writing
	t    *testing.T
	last string // the folder of the last run
	code int    // of a run that writes
}

func (o *outputs) dir() string {
	o.last = o.t.TempDir()
	return o.last
}

func (o *outputs) path(dir string) string { return filepath.Join(dir, o.out) }

// run runs the command, with OUT below a folder.
func (o *outputs) run(dir string, more ...string) (code int, said string) {
	args := slices.Clone(o.args)
	at := slices.Index(args, "OUT")
	args[at] = o.path(dir)
	c := explaintest.Process(o.t, o.t.TempDir(), []string{"GITHUB_ACTIONS="}, slices.Insert(args, at+1, more...)...)
	b, err := c.CombinedOutput()
	return explaintest.Exit(o.t, err), string(b)
}

// want checks the exit code.
func (o *outputs) want(what string, code int, dir string, more ...string) (said string) {
	o.t.Helper()
	got, said := o.run(dir, more...)
	if got != code {
		o.t.Errorf("%s: exit %d, not %d; said:\n%s", what, got, code, said)
	}
	return said
}

func node(t *testing.T, path string, mode uint32, device int) {
	t.Helper()
	if err := syscall.Mknod(path, mode|0o666, device); err != nil {
		t.Skipf("no devices can be made here: %v", err)
	}
}

func kind(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	return info.Mode().Type()
}

// noRoom mounts a file system without room on a folder.
func noRoom(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	explaintest.Put(t, filepath.Join(dir, "rest"), make([]byte, 4096), 0o644)
}

// TestPackedCaptureWhereTheDiskIsFull: a packed capture is unpacked where there is little room, and a full disk is said to be full.
func TestPackedCaptureWhereTheDiskIsFull(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(read(t, explaintest.Testdata("tiny.sqlite"))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.sqlite.gz")
	explaintest.Put(t, path, packed.Bytes(), 0o644)
	full, little := t.TempDir(), t.TempDir()
	noRoom(t, full)
	if err := syscall.Mount("tmpfs", little, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(little, syscall.MNT_DETACH) })
	for temp, want := range map[string]int{full: exitInput, little: exitOK} {
		said, err := explaintest.Process(t, t.TempDir(), []string{"TMPDIR=" + temp}, "report", path, "-q", "--out", "r").CombinedOutput()
		if code := explaintest.Exit(t, err); code != want || code != exitOK && !strings.Contains(string(said), "the disk is full") {
			t.Errorf("%s: exit %d, not %d: %s", temp, code, want, said)
		}
		if temp == little {
			if left := explaintest.FilesIn(t, temp); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		}
	}
}

// alone checks that nothing lies beside what was there.
func (o *outputs) alone(what, dir string, want ...string) {
	o.t.Helper()
	if left := explaintest.FilesIn(o.t, dir); !slices.Equal(left, want) {
		o.t.Errorf("%s: the folder holds %q, not %q", what, left, want)
	}
}

func (o *outputs) files() {
	t := o.t
	first := explaintest.Read(t, o.path(o.last))
	again := o.code // over its own
	if o.never {
		again = exitUsage
	}

	dir := o.last
	before, _ := os.Stat(o.path(dir))
	o.want("own", again, dir)
	if after, err := os.Stat(o.path(dir)); err != nil || os.SameFile(before, after) == (again == o.code) || after.Mode() != before.Mode() {
		t.Errorf("own: replaced: %v; %v; mode %v, was %v", !os.SameFile(before, after), err, after.Mode(), before.Mode())
	}
	o.alone("own", dir, o.out)

	for _, foreign := range []string{"important\n", `{"schema":"other/1"}`, "kernels:\n", "# notes\n", "### mine\n"} {
		dir = o.dir()
		explaintest.Put(t, o.path(dir), []byte(foreign), 0o640)
		o.want("foreign", exitUsage, dir)
		if got := explaintest.Read(t, o.path(dir)); string(got) != foreign {
			t.Errorf("foreign: %q is %q now", foreign, got)
		}
	}
	o.want("foreign, forced", o.code, dir, "--force")
	if info, err := os.Stat(o.path(dir)); err != nil || info.Size() < 20 || info.Mode() != 0o640 {
		t.Errorf("foreign, forced: %v, %v", info, err)
	}

	dir = o.dir()
	explaintest.Put(t, o.path(dir), first, 0o444)
	o.want("read-only", exitUsage, dir)
	if kind := explaintest.Read(t, o.path(dir)); !bytes.Equal(kind, first) {
		t.Error("read-only: it was replaced")
	}

	dir = o.dir()
	explaintest.Put(t, filepath.Join(dir, "target"), first, 0o644)
	if err := os.Symlink("target", o.path(dir)); err != nil {
		t.Fatal(err)
	}
	old, _ := os.Stat(o.path(dir))
	o.want("symlink", again, dir)
	if now, err := os.Stat(filepath.Join(dir, "target")); err != nil || kind(t, o.path(dir)) != os.ModeSymlink || os.SameFile(old, now) == (again == o.code) {
		t.Errorf("symlink: the link is %v; replaced: %v; %v", kind(t, o.path(dir)), !os.SameFile(old, now), err)
	}

	dir = o.dir()
	if err := os.Symlink("deep/er", o.path(dir)); err != nil {
		t.Fatal(err)
	}
	o.want("dangling", o.code, dir)
	if got := explaintest.Read(t, filepath.Join(dir, "deep", "er")); kind(t, o.path(dir)) != os.ModeSymlink || len(got) < 20 {
		t.Errorf("dangling: the link is %v, and there are %d bytes at its end", kind(t, o.path(dir)), len(got))
	}

	dir = o.dir()
	if err := os.Mkdir(o.path(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if o.inside {
		o.want("folder", o.code, dir)
	} else {
		o.want("folder", exitUsage, dir)
		o.alone("folder", o.path(dir))
	}

	dir = o.dir()
	if err := syscall.Mkfifo(o.path(dir), 0o666); err != nil {
		t.Fatal(err)
	}
	read := make(chan int64)
	go func() {
		f, err := os.Open(o.path(dir))
		if err != nil {
			t.Error(err)
		}
		defer f.Close()
		n, _ := io.Copy(io.Discard, f)
		read <- n
	}()
	o.want("FIFO", o.code, dir)
	if f, err := os.OpenFile(o.path(dir), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // nobody wrote
		f.Close()
	}
	if n := <-read; kind(t, o.path(dir)) != os.ModeNamedPipe || n < int64(len(first))*9/10 {
		t.Errorf("FIFO: it is %v; %d bytes came through of %d", kind(t, o.path(dir)), n, len(first))
	}
	o.alone("FIFO", dir, o.out)

	if out, err := o.toStdout(); err != nil || len(out) < len(first)*9/10 || !bytes.HasPrefix(out, first[:9]) {
		t.Errorf("/dev/stdout: %d bytes of %d, %.60q…, %v", len(out), len(first), out, err)
	}

	dir = o.dir()
	noRoom(t, dir)
	if said := o.want("full", exitInput, dir); !strings.Contains(said, "the disk is full") {
		t.Errorf("full: said %s", said)
	}
	o.alone("full", dir, "rest")

	dir = o.dir()
	node(t, o.path(dir), syscall.S_IFCHR, 1<<8|3) // as /dev/null
	o.want("device", o.code, dir)
	if k := kind(t, o.path(dir)); k != os.ModeDevice|os.ModeCharDevice {
		t.Errorf("device: it is %v now", k)
	}
	o.alone("device", dir, o.out)

	dir = o.dir()
	node(t, o.path(dir), syscall.S_IFCHR, 1<<8|7) // as /dev/full
	if said := o.want("full device", exitInput, dir); !strings.Contains(said, "the disk is full") {
		t.Errorf("full device: said %s", said)
	}
}

// toStdout writes to /dev/stdout, by a link to it.
func (o *outputs) toStdout() ([]byte, error) {
	dir := o.dir()
	if err := os.Symlink("/dev/stdout", o.path(dir)); err != nil {
		return nil, err
	}
	args := slices.Clone(o.args)
	args[slices.Index(args, "OUT")] = o.path(dir)
	out, err := explaintest.Process(o.t, o.t.TempDir(), nil, args...).Output()
	if kind(o.t, o.path(dir)) != os.ModeSymlink {
		o.t.Error("/dev/stdout: the link is gone")
	}
	if code := explaintest.Exit(o.t, err); code != o.code {
		return out, fmt.Errorf("exit %d", code)
	}
	return out, nil
}

func (o *outputs) folders() {
	t := o.t
	files := explaintest.FilesIn(t, o.path(o.last))
	dir := o.last
	switch {
	case o.main != "":
		before, _ := os.Stat(filepath.Join(o.path(dir), o.main))
		explaintest.Put(t, filepath.Join(o.path(dir), "mine.txt"), []byte("mine"), 0o644)
		o.want("own", o.code, dir)
		if after, err := os.Stat(filepath.Join(o.path(dir), o.main)); err != nil || os.SameFile(before, after) {
			t.Errorf("own: %s is the old one: %v", o.main, err)
		}
		if got := explaintest.Read(t, filepath.Join(o.path(dir), "mine.txt")); string(got) != "mine" {
			t.Errorf("own: the file beside is %q", got)
		}
		o.alone("own", dir, o.out)

		dir = o.dir()
		for _, name := range files {
			explaintest.Put(t, filepath.Join(o.path(dir), name), []byte("important"), 0o644)
		}
		o.want("foreign", exitUsage, dir)
		for _, name := range files {
			if got := explaintest.Read(t, filepath.Join(o.path(dir), name)); string(got) != "important" {
				t.Errorf("foreign: %s is %.20q… now", name, got)
			}
		}

		dir = o.dir()
		if err := os.MkdirAll(o.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(filepath.Join(o.path(dir), o.main), 0o644); err != nil {
			t.Fatal(err)
		}
		o.want("FIFO inside", exitUsage, dir)
		if k := kind(t, filepath.Join(o.path(dir), o.main)); k != os.ModeNamedPipe {
			t.Errorf("FIFO inside: it is %v now", k)
		}
		o.alone("FIFO inside", o.path(dir), o.main)
	case o.name == "demo --out":
		o.want("own", o.code, dir)
	default:
		o.want("own", exitUsage, dir)
	}

	dir = o.dir()
	if err := os.Mkdir(o.path(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	o.want("folder", o.code, dir)

	for what, mode := range map[string]uint32{"file": syscall.S_IFREG, "FIFO": syscall.S_IFIFO, "device": syscall.S_IFCHR} {
		dir = o.dir()
		node(t, o.path(dir), mode, 1<<8|3)
		was := kind(t, o.path(dir))
		o.want(what, exitUsage, dir)
		if now := kind(t, o.path(dir)); now != was {
			t.Errorf("%s: it is %v now", what, now)
		}
		o.alone(what, dir, o.out)
	}

	dir = o.dir()
	if err := os.Symlink("deep/er", o.path(dir)); err != nil {
		t.Fatal(err)
	}
	o.want("dangling", o.code, dir)
	if got := explaintest.FilesIn(t, filepath.Join(dir, "deep", "er")); kind(t, o.path(dir)) != os.ModeSymlink || !slices.Equal(got, files) {
		t.Errorf("dangling: the link is %v, and %q at its end", kind(t, o.path(dir)), got)
	}

	dir = o.dir()
	noRoom(t, dir)
	if said := o.want("full", exitInput, dir); !strings.Contains(said, "the disk is full") {
		t.Errorf("full: said %s", said)
	}
}
