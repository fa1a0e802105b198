//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestMemoryOfSmallFiles: the report of a file below 25 MB takes less than 500 MB however many devices, processes, streams,
// kernels or names it has, and so does the comparison of two.
func TestMemoryOfSmallFiles(t *testing.T) {
	one := func(th *tracetest.Thread, i int64, at tracetest.Place) {
		th.Launch("k", 10_000*i, 10_000*i+5000, tracetest.Kernel{Place: at, Start: 10_000*i + 6000, End: 10_000*i + 2_000_000})
	}
	for _, c := range []struct {
		name string
		n    int64 // with -long
		add  func(b *tracetest.Builder, th *tracetest.Thread, i int64)
	}{
		{"devices", 20_000, func(_ *tracetest.Builder, th *tracetest.Thread, i int64) { one(th, i, tracetest.Place{Device: i}) }},
		{"processes", 30_000, func(b *tracetest.Builder, _ *tracetest.Thread, i int64) {
			one(b.Process(2+i, "p").Thread(2+i, ""), i, tracetest.Place{})
		}},
		{"streams", 30_000, func(_ *tracetest.Builder, th *tracetest.Thread, i int64) { one(th, i, tracetest.Place{Stream: i}) }},
		{"names", 30_000, func(_ *tracetest.Builder, th *tracetest.Thread, i int64) {
			th.Range("range "+strconv.FormatInt(i, 10), 10_000*i, 10_000*i+5000)
			one(th, i, tracetest.Place{})
		}},
		{"kernels", 130_000, func(_ *tracetest.Builder, th *tracetest.Thread, i int64) {
			th.Launch("kernel_"+letters(i), 10_000*i, 10_000*i+5000, tracetest.Kernel{Start: 10_000*i + 6000, End: 10_000*i + 9000})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			b := tracetest.New()
			th := b.Process(1, "p").Thread(1, "")
			for i := range int64(longtest.N(1_000, int(c.n))) {
				c.add(b, th, i)
			}
			if err := b.Write(filepath.Join(dir, "many.sqlite")); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir, "many.sqlite"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Link(filepath.Join(dir, "many.sqlite"), filepath.Join(dir, "again.sqlite")); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"report", "many.sqlite", "--out", "out"}, {"diff", "many.sqlite", "again.sqlite"}} {
				run := explaintest.Process(t, dir, nil, args...)
				var said bytes.Buffer
				run.Stdout, run.Stderr = &said, &said
				peak := peakOf(t, run)
				if code := run.ProcessState.ExitCode(); code != exitOK && (args[0] == "report" || code != exitInconclusive) {
					t.Fatalf("exit code %d: %s", code, said.Bytes())
				}
				t.Logf("%s: %d MB at most, of a file of %.1f MB", args[0], peak/1e6, float64(info.Size())/1e6)
				if most := int64(longtest.N(200, 500)) * 1e6; peak == 0 || peak > most {
					t.Errorf("%s: %d MB", args[0], peak/1e6)
				}
			}
		})
	}
}

// letters writes a number in letters, by which names differ that are equal but for digits.
func letters(i int64) string {
	return strings.Map(func(digit rune) rune { return digit - '0' + 'a' }, strconv.FormatInt(i, 10))
}

// peakOf runs a program and is the most memory, in bytes, that it had. What wait says of a child counts the memory of its
// parent before exec too, so it is no answer here.
func peakOf(t *testing.T, c *exec.Cmd) (peak int64) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/status") // gone once the process is
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
			if kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
				peak = max(peak, kib<<10)
			}
		}
		select {
		case <-ended: // how, its state says
			return peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestMemoryOfProfiles: the report of a trace of PyTorch takes at most 150 MB, and with -damaged 2000 one of 5 GB takes at most
// 1 GiB; packed ones too with -long. The log has the processor time, and that of taking the first 64 MB apart with encoding/json.
func TestMemoryOfProfiles(t *testing.T) {
	p, most := tracetest.Profile{Steps: longtest.N(60, 100), Kernels: 500}, int64(150<<20)
	if damaged() >= 2000 {
		p.Steps, most = 7050, 1<<30
	}
	dir := t.TempDir()
	for _, name := range longtest.Some([]string{"profile.json", "profile.json.gz"}, 1) {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		var w io.WriteCloser = f
		if strings.HasSuffix(name, ".gz") {
			w, _ = gzip.NewWriterLevel(f, gzip.BestSpeed) // the level is one
		}
		err = errors.Join(p.Write(w), w.Close())
		if w != f {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		c := explaintest.Process(t, dir, nil, "report", name, "--out", "out", "--force")
		var said bytes.Buffer
		c.Stdout, c.Stderr = &said, &said
		peak := peakOf(t, c)
		if c.ProcessState.ExitCode() != exitOK {
			t.Fatalf("%v: %s", c.ProcessState, said.Bytes())
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MB, %d events: %d MB at most, %v of processor time", name, info.Size()>>20, p.Events(), peak>>20,
			c.ProcessState.UserTime()+c.ProcessState.SystemTime())
		if peak == 0 || peak > most {
			t.Errorf("%d MB", peak>>20)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if !longtest.On() {
		return // what follows says how long another reader takes
	}
	var head bytes.Buffer
	if err := (tracetest.Profile{Steps: 90, Kernels: 500}).Write(&head); err != nil {
		t.Fatal(err)
	}
	before, tokens := time.Now(), json.NewDecoder(io.LimitReader(&head, 64<<20))
	for _, err := tokens.Token(); err == nil; _, err = tokens.Token() {
	}
	t.Logf("encoding/json takes %v for 64 MB", time.Since(before))
}

// TestScrubOfAViewWithoutEnd is refused before anything is written.
func TestScrubOfAViewWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "endless.sqlite")
	if err := os.WriteFile(path, read(t, "../../testdata/tiny.sqlite"), 0o644); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []string{"alter table NVTX_EVENTS rename to ranges",
		"create view NVTX_EVENTS as with recursive n(i) as (select 0 union all select i + 1 from n) select r.* from n, ranges r"} {
		if _, err := db.Exec(do); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.sqlite")
	code, said := runHere(t, "scrub", path, out)
	if code != exitInput || !strings.Contains(said, "more rows than a file of ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if names := explaintest.FilesIn(t, dir); len(names) != 1 {
		t.Errorf("%q are there", names)
	}
}
