package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHelpFlags(t *testing.T) {
	got := helpFlags("usage: nsys start [<args>]\n\n\t-c, --capture-range=\n\n\t   When '--nope' is used …\n\n\t--cuda-graph-trace=<granularity>[:<launch origin>]\n(Experimental) --ib-switch=<IB>\n")
	for _, want := range []string{"--capture-range", "--cuda-graph-trace", "--ib-switch"} {
		if !got[want] {
			t.Errorf("%s is not found", want)
		}
	}
	if got["--nope"] || len(got) != 3 {
		t.Errorf("found %v", got)
	}
}

// --host asks for what the installed version's help names: Python's stacks and its lock; the export writes what ranges carry.
func TestHostAsksForPython(t *testing.T) {
	help := "\t-t, --trace=\n\t   'cuda', 'nvtx', 'osrt', 'python-gil'\n\t--python-sampling=\n\t--python-sampling-frequency=\n"
	newer := &Nsys{Name: "nsys", year: 2025, flags: map[string]map[string]bool{
		"profile": helpFlags(help), "export": helpFlags("\t--include-blobs=\n")}}
	older := &Nsys{Name: "nsys", year: 2022, flags: map[string]map[string]bool{"profile": helpFlags("--trace=\n")}}
	for _, x := range []struct {
		n    *Nsys
		t    Trace
		want string
	}{
		{newer, Trace{Kinds: "cuda,nvtx,osrt", Host: true},
			"--trace=cuda,nvtx,osrt,python-gil --python-sampling=true --python-sampling-frequency=100"},
		{newer, Trace{Kinds: "cuda,python-gil", Host: true},
			"--trace=cuda,python-gil --python-sampling=true --python-sampling-frequency=100"},
		{newer, Trace{Kinds: "cuda,nvtx,osrt"}, "--trace=cuda,nvtx,osrt"},
		{older, Trace{Kinds: "cuda,nvtx,osrt", Host: true}, "--trace=cuda,nvtx,osrt"},
	} {
		l := x.n.line("profile")
		err := l.trace(&x.t)
		args := l.args[2:]
		if got := strings.Join(args, " "); err != nil || got != x.want {
			t.Errorf("%+v: %q, %v, want %q", x.t, got, err, x.want)
		}
	}
	const export = "nsys export --type=sqlite --lazy=false --force-overwrite=true"
	if got := strings.Join(exportCommand(newer, "a.nsys-rep", "a.sqlite"), " "); got != export+" --include-blobs=true --output=a.sqlite a.nsys-rep" {
		t.Errorf("%s", got)
	}
	if got := strings.Join(exportCommand(older, "a.nsys-rep", "a.sqlite"), " "); got != export+" --output=a.sqlite a.nsys-rep" {
		t.Errorf("%s", got)
	}
}

// TestCaptureIsForLinux: elsewhere nothing is recorded, and the error says where to record instead of what to install.
func TestCaptureIsForLinux(t *testing.T) {
	for goos, want := range map[string]struct{ advice, refusal string }{
		"linux":   {"install Nsight Systems", ""},
		"darwin":  {"run explain capture there, and read the .sqlite file here", ""}, // NVIDIA has no nsys for it to find
		"windows": {"run explain capture there", "does not run on Windows: nsys records servers on Linux"},
	} {
		if got := remedy(goos); !strings.Contains(got, want.advice) {
			t.Errorf("%s: %q, want %q", goos, got, want.advice)
		}
		if err := refuse(goos); (err != nil) != (want.refusal != "") || err != nil && !strings.Contains(err.Error(), want.refusal) {
			t.Errorf("%s: %v, want %q", goos, err, want.refusal)
		}
	}
}

func TestWindowCheck(t *testing.T) {
	for _, x := range []struct {
		w    Window
		want string // in the error; empty: none
	}{
		{Window{}, ""},
		{Window{Delay: 30 * time.Second, Duration: time.Second}, ""},
		{Window{Ready: "x", Duration: 1500 * time.Millisecond, Warmup: time.Second}, ""},
		{Window{Ready: "x", Client: []string{"c"}}, ""},
		{Window{Duration: 1500 * time.Millisecond}, "whole seconds"},
		{Window{NVTX: "a", Duration: time.Second}, "record nothing"},
		{Window{Ready: "x"}, "nothing ends it"},
		{Window{Ready: "x", Delay: time.Second, Duration: time.Second}, "--warmup, not --delay"},
		{Window{Client: []string{"c"}}, "need --ready"},
		{Window{Delay: -time.Second}, "negative"},
	} {
		err := x.w.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %q", x.w, err, x.want)
		}
	}
}

// TestImporterIsFoundThroughLinks: Debian's /usr/bin/nsys leads by links to a folder without the importer, and passes one with it.
func TestImporterIsFoundThroughLinks(t *testing.T) {
	root := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("lib/arch/nsight-systems/target-linux-x64/nsys")
	want := write("lib/nsight-systems/host-linux-x64/QdstrmImporter")
	link := func(to, name string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	link("../../arch/nsight-systems/target-linux-x64/nsys", "lib/nsight-systems/bin/nsys")
	link("../lib/nsight-systems/bin/nsys", "bin/nsys")
	t.Setenv("PATH", "")
	got := findImporter(filepath.Join(root, "bin/nsys"), func(string) string { return "" })
	if a, err := filepath.EvalSymlinks(got); err != nil || a != want {
		t.Errorf("found %q, want %q (%v)", got, want, err)
	}
	if got := findImporter("nsys", func(string) string { return "/own/importer" }); got != "/own/importer" {
		t.Errorf("the variable says otherwise: %q", got)
	}
}

func TestSafeValue(t *testing.T) {
	for value, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "NVIDIA H100 80GB HBM3", "org/model-1.5B": "org/model-1.5B", " 550.54 \n": "550.54",
		"hf_abcdefghijklm": "", "http://x": "", "a;rm": "", "": "", "TOKEN=abc": "", strings.Repeat("a", 101): "", "a\nb": "",
	} {
		if got := safeValue(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}
