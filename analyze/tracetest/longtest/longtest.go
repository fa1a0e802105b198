// Package longtest is a test kit: how much of what could be tested an ordinary run of the tests takes. It takes little, so
// that nobody waits; all of it with
//
//	go test ./PACKAGE -args -long
//
// which .ci/run long does for every package that imports this one, weekly and before a release.
package longtest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var long = flag.Bool("long", false, "simulations in full, and all real captures")

// On reports whether this run takes all of it.
func On() bool { return *long }

// N is how often a simulation is drawn: few, or many with -long.
func N(few, many int) int {
	if On() {
		return many
	}
	return few
}

// Draws makes properties of package rapid draw so many inputs in this test, or as many as ever with -long.
func Draws(tb testing.TB, n int) {
	tb.Helper()
	checks := flag.Lookup("rapid.checks")
	if On() || checks.Value.String() != checks.DefValue {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = flag.Set("rapid.checks", checks.DefValue) })
}

// Some are n of the cases of a test, spread evenly over the list with the first and the last among them, or all of them
// with -long.
func Some[T any](list []T, n int) []T {
	if On() || len(list) <= n {
		return list
	}
	few := make([]T, n)
	for i := range few {
		few[i] = list[i*(len(list)-1)/max(n-1, 1)]
	}
	return few
}

// short are the real captures of an ordinary run: copies without kernels, CUDA graphs, two GPUs with NVTX, two
// processes, the newest nsys.
var short = []string{"alpa_r1_memcpy_nokernel", "cs336zx_2_7B_compile_cudagraph", "nsysai_mfu_2gpu_before", "testcuda_2026_1", "weatherbench_2025_5"}

// shortRanks are those of several ranks.
var shortRanks = 2

// traces is the folder of real captures, beside the repository. A clone has none, and what is asked about them is empty.
var traces = func() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	return filepath.Join(dir, "..", "shared", "traces")
}()

// Captures are the real captures: a few of unlike kinds, or all with -long.
func Captures(tb testing.TB) []string {
	tb.Helper()
	list := glob(tb, "*.sqlite")
	if On() {
		return list
	}
	return slices.DeleteFunc(list, func(path string) bool {
		return !slices.Contains(short, strings.TrimSuffix(filepath.Base(path), ".sqlite"))
	})
}

// Ranks are captures of the ranks of real runs: two, or all with -long.
func Ranks(tb testing.TB) []string {
	tb.Helper()
	list := glob(tb, filepath.Join("ranks", "*.sqlite"))
	if On() {
		return list
	}
	return list[:min(len(list), shortRanks)]
}

func glob(tb testing.TB, pattern string) []string {
	tb.Helper()
	list, err := filepath.Glob(filepath.Join(traces, pattern))
	if err != nil {
		tb.Fatal(err)
	}
	return list
}
