//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// faultCalls are the system calls that fail, and how.
var faultCalls = map[string]string{"write": "ENOSPC", "renameat": "EIO", "fsync": "EIO", "openat": "EMFILE", "mkdirat": "ENOSPC",
	"read": "EIO", "pread64": "EIO"}

// saidSo marks, among the sums of files, a report that names what it could not read.
const saidSo = " said"

// someCalls are the calls that fail in the i-th command: three, in turn, or all with -args -long.
func someCalls(i int) (list []string) {
	all := slices.Sorted(maps.Keys(faultCalls))
	if longtest.On() {
		return all
	}
	for k := range 3 {
		list = append(list, all[(3*i+k)%len(all)])
	}
	return list
}

// TestFaultsAtSystemCalls: the n-th of some of these calls fails, for a drawn n of each, with -args -long of all and for every n, of
// reads the first, the last and 50 drawn ones. A command that succeeds all the same has written what it writes without a
// fault, or a report that names what it could not read, one that fails leaves nothing under the name of its output, or what was there, and
// no input changes.
func TestFaultsAtSystemCalls(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace")
	}
	commands := map[string][]string{
		"report":  {"report", "base.sqlite", "--out", "out"},
		"replace": {"report", "base.sqlite", "--out", "out"},
		"diff":    {"diff", "base.sqlite", "head.sqlite", "--out", "out", "--format", "json"},
		"gate":    {"gate", "--base", "base.sqlite", "--head", "head.sqlite", "--out", "out"},
		"history": {"history", "add", "report.json", "--store", "out", "--commit", strings.Repeat("a", 40)},
		"scrub":   {"scrub", "base.sqlite", "out"},
	}
	for i, name := range slices.Sorted(maps.Keys(commands)) {
		args, rng := commands[name], rand.New(rand.NewPCG(*longSeed, uint64(i)))
		t.Run(name, func(t *testing.T) {
			old := t.TempDir()
			if name == "replace" {
				if code, said := runHere(t, "report", "../../testdata/head.sqlite", "--out", old); code != exitOK {
					t.Fatal(said)
				}
			}
			run := func(inject ...string) (code int, said, wrote, inputs string) {
				dir := t.TempDir()
				for _, in := range []string{"base", "head"} {
					if err := os.WriteFile(filepath.Join(dir, in+".sqlite"), read(t, "../../testdata/"+in+".sqlite"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if name == "history" {
					if err := os.WriteFile(filepath.Join(dir, "report.json"), faultReport(t), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				if name == "replace" {
					if err := os.CopyFS(filepath.Join(dir, "out"), os.DirFS(old)); err != nil {
						t.Fatal(err)
					}
				}
				inputFiles := []string{filepath.Join(dir, "base.sqlite"), filepath.Join(dir, "head.sqlite")}
				before := sums(t, inputFiles...)
				c := explaintest.Process(t, dir, nil, args...)
				c.Args = append(append([]string{strace, "-f", "-qq"}, inject...), append([]string{"--", c.Path}, c.Args[1:]...)...)
				c.Path = strace
				text, err := c.CombinedOutput()
				if err != nil && c.ProcessState == nil {
					t.Fatal(err)
				}
				after := sums(t, inputFiles...)
				if told, err := os.ReadFile(filepath.Join(dir, "out", "comparison.json")); err == nil && bytes.Contains(told, []byte(`"verdict": "error"`)) {
					return c.ProcessState.ExitCode(), string(text), "", "" // a gate that failed says so in its folder
				}
				wrote = sums(t, filepath.Join(dir, "out"))
				if before != after {
					inputs = after
				}
				return c.ProcessState.ExitCode(), string(text), wrote, inputs
			}
			log := filepath.Join(t.TempDir(), "calls")
			plain, said, want, _ := run("-o", log, "-e", "trace="+strings.Join(keysOf(faultCalls), ","))
			if want == "" || plain == exitInput {
				t.Fatalf("without a fault: exit %d: %s", plain, said)
			}
			most, before := countCalls(t, log), sums(t, old)
			for _, call := range someCalls(i) {
				errno := faultCalls[call]
				for _, n := range drawn(rng, call, most[call]) {
					code, said, wrote, changed := run("-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, errno, n))
					if strings.Contains(said, "runtime: netpoll") || strings.Contains(said, "fatal error: runtime") || code == 127 {
						continue // the fault met Go itself, or the loader
					}
					what := fmt.Sprintf("%s %d of %d fails with %s: exit %d", call, n, most[call], errno, code)
					switch {
					case changed != "":
						t.Errorf("%s, and an input changed: %s", what, said)
					case strings.Contains(said, "goroutine "):
						t.Errorf("%s, and a panic: %s", what, said)
					case code == plain && name != "history" && !sameOrSaid(wrote, want):
						t.Errorf("%s, and the output is another one:\n%s\nfor\n%s\n%s", what, wrote, want, said)
					case code == plain && wrote == "":
						t.Errorf("%s, and nothing is written: %s", what, said)
					case code != plain && code != exitInput:
						t.Errorf("%s: %s", what, said)
					case code == exitInput && plain != exitInput && wrote != "" && wrote != want && wrote != before && name != "history":
						t.Errorf("%s, and a part of the output is there: %s", what, said)
					}
				}
			}
		})
	}
}

// drawn are the n of a call that fail.
func drawn(rng *rand.Rand, call string, most int) (list []int) {
	if most == 0 {
		return nil
	}
	if !longtest.On() {
		return []int{1 + rng.IntN(most)}
	}
	if call == "read" || call == "pread64" {
		list = append(list, 1, most)
		for range 50 {
			list = append(list, 1+rng.IntN(most))
		}
		return list
	}
	for n := range most {
		list = append(list, n+1)
	}
	return list
}

func keysOf(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

// countCalls is how often the thread that makes most of them makes each call.
func countCalls(t *testing.T, log string) map[string]int {
	t.Helper()
	of, most := map[string]int{}, map[string]int{}
	for _, line := range strings.Split(string(read(t, log)), "\n") {
		thread, rest, _ := strings.Cut(line, " ")
		if _, err := strconv.Atoi(thread); err != nil {
			continue
		}
		call, _, ok := strings.Cut(strings.TrimSpace(rest), "(")
		if _, known := faultCalls[call]; ok && known {
			of[thread+call]++
			most[call] = max(most[call], of[thread+call])
		}
	}
	return most
}

// saidIn is saidSo for a report that names what it could not read.
func saidIn(text []byte) string {
	if bytes.Contains(text, []byte("could not be read again")) {
		return saidSo
	}
	return ""
}

// sameOrSaid: the files are those without a fault, but for reports that name what could not be read.
func sameOrSaid(wrote, want string) bool {
	got, without := strings.Split(wrote, "\n"), strings.Split(want, "\n")
	return slices.EqualFunc(got, without, func(g, w string) bool {
		return g == w || strings.HasSuffix(g, saidSo) && strings.Fields(g)[0] == strings.Fields(w)[0]
	})
}

// sums are the names and sums of files, and of those below folders.
func sums(t *testing.T, paths ...string) string {
	t.Helper()
	var b strings.Builder
	for _, top := range paths {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, _ := filepath.Rel(top, path) // both are absolute
				text := read(t, path)
				fmt.Fprintf(&b, "%s %x%s\n", rel, sha256.Sum256(text), saidIn(text))
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return b.String()
}

// faultReport is a report for a history.
func faultReport(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if code, said := runHere(t, "report", "../../testdata/base.sqlite", "--out", filepath.Join(dir, "r")); code != exitOK {
		t.Fatal(said)
	}
	return bytes.Clone(read(t, filepath.Join(dir, "r", "report.json")))
}
