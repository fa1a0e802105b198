package tracetest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// rewritten is the path of a copy of src with edits.
func rewritten(t *testing.T, src string, edits ...Edit) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "edited.sqlite")
	if err := Rewrite(src, dst, edits...); err != nil {
		t.Fatal(err)
	}
	return dst
}

const kernelRows = `SELECT (start / 1000.0) || '-' || ("end" / 1000.0) || ' ' || s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName`

func TestScaleKernelsMovesWhatFollows(t *testing.T) {
	b := New()
	th := b.Process(1, "x").Thread(1, "x")
	th.Range("step", 0, 900*us)
	th.Launch("a", 0, 5*us, Kernel{Start: 100 * us, End: 200 * us})
	th.Launch("b", 150*us, 155*us, Kernel{Start: 200 * us, End: 300 * us}) // launched while a runs
	th.Launch("a", 160*us, 165*us, Kernel{Start: 350 * us, End: 450 * us}) // after a gap of 50
	th.DeviceSynchronize(170*us, 460*us, 0)
	got := rewritten(t, b.WriteTB(t), ScaleKernels(func(name string) bool { return name == "a" }, 2))
	db := open(t, got)
	want := []string{"100.0-300.0 a", "300.0-400.0 b", "450.0-650.0 a"}
	if diff := cmp.Diff(want, texts(t, db, kernelRows)); diff != "" {
		t.Errorf("kernels (-want +got):\n%s", diff)
	}
	want = []string{"0-5", "200-205", "220-225", "240-660"} // launches keep their length, the wait does not
	if diff := cmp.Diff(want, texts(t, db, `SELECT (start / 1000) || '-' || ("end" / 1000) FROM CUPTI_ACTIVITY_KIND_RUNTIME`)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if got := text(t, db, `SELECT (start / 1000) || '-' || ("end" / 1000) FROM NVTX_EVENTS`); got != "0-1100" {
		t.Errorf("range %s, want 0-1100", got)
	}
	if got := text(t, db, "SELECT (duration / 1000) || ' ' || startTime || ' ' || (stopTime / 1000) FROM ANALYSIS_DETAILS"); got != "1100 0 1100" {
		t.Errorf("details %s, want 1100 0 1100", got)
	}
}

func TestScaleKernelsOnRealTrace(t *testing.T) {
	for _, name := range longtest.Some([]string{"nsysai_mfu_2gpu_after", "cs336zx_2_7B_nvtx"}, 1) {
		t.Run(name, func(t *testing.T) {
			src := realTrace(t, name)
			match := func(name string) bool { return strings.Contains(name, "vectorized_elementwise_kernel") }
			dst := rewritten(t, src, ScaleKernels(match, 1.08))
			const query = `SELECT s.value || ' ' || ("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName ORDER BY k.rowid`
			before, after := texts(t, open(t, src), query), texts(t, open(t, dst), query)
			if len(before) != len(after) {
				t.Fatalf("%d kernels became %d", len(before), len(after))
			}
			for i := range before {
				name, was := splitLast(t, before[i])
				_, is := splitLast(t, after[i])
				want := float64(was)
				if match(name) {
					want *= 1.08
				}
				if diff := float64(is) - want; diff > 1 || diff < -1 {
					t.Fatalf("kernel %d (%s): %d ns became %d, want %.0f", i, name, was, is, want)
				}
			}
			// Launches still precede their kernels, and kernels are still in order of start.
			db := open(t, dst)
			const joined = " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24"
			early := text(t, db, "SELECT count(*)"+joined+" WHERE k.start < r.start")
			if was := text(t, open(t, src), "SELECT count(*)"+joined+" WHERE k.start < r.start"); early != was {
				t.Errorf("%s kernels start before their launch, %s in the source", early, was)
			}
			if n := text(t, db, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL a JOIN CUPTI_ACTIVITY_KIND_KERNEL b ON b.rowid = a.rowid + 1 WHERE b.start < a.start"); n != "0" {
				t.Errorf("%s kernels out of order", n)
			}
		})
	}
}

func splitLast(t *testing.T, s string) (string, int64) {
	t.Helper()
	i := strings.LastIndexByte(s, ' ')
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return s[:i], n
}

func TestStretchIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans [][2]int64
		for range rapid.IntRange(0, 8).Draw(t, "spans") {
			start := rapid.Int64Range(-1000, 1000).Draw(t, "start")
			spans = append(spans, [2]int64{start, start + rapid.Int64Range(1, 300).Draw(t, "length")})
		}
		factor := rapid.SampledFrom([]float64{0.25, 0.5, 1, 1.04, 1.08, 3}).Draw(t, "factor")
		own := slices.Clone(spans)
		m := newStretch(spans, factor)
		for _, s := range own {
			got, want := float64(m.at(s[1])-m.at(s[0])), float64(s[1]-s[0])*factor
			if got < want-1 || got > want+1 {
				t.Fatalf("%v became %v long, want %v", s, got, want)
			}
		}
		for at := int64(-1100); at < 1400; at++ {
			if m.at(at+1) < m.at(at) {
				t.Fatalf("time runs back at %d: %d, %d", at, m.at(at), m.at(at+1))
			}
		}
	})
}

func TestEdits(t *testing.T) {
	src := Tiny().WriteTB(t)
	check := func(name, query, want string, edits ...Edit) {
		t.Helper()
		if got := strings.Join(texts(t, open(t, rewritten(t, src, edits...)), query), ","); got != want {
			t.Errorf("%s: %s gives %s, want %s", name, query, got, want)
		}
	}
	const span = `SELECT (min(start) / 1000) || '-' || (max("end") / 1000) FROM CUPTI_ACTIVITY_KIND_KERNEL`
	const times = `SELECT ("end" - start) || ' ' || (start / 1000) FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY rowid LIMIT 2`
	check("shift", span, "-400-600", ShiftTime(-500*us))
	check("shift", times, "5000 -410,5000 -400", ShiftTime(-500*us))
	check("gaps", span, "100-1700", InsertGaps(300*us, 350*us, 610*us))
	check("gaps", `SELECT (start / 1000) || '-' || ("end" / 1000) FROM NVTX_EVENTS`, "80-770,85-108,108-120,880-1660", InsertGaps(300*us, 350*us, 610*us))
	check("cut", kernelRows, "365.0-400.0 gemm,460.0-500.0 softmax", Cut(341*us, 501*us))
	check("cut", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME", "4", Cut(341*us, 501*us))
	check("drop", "SELECT count(*) FROM sqlite_master WHERE name = 'NVTX_EVENTS'", "0", DropTable("NVTX_EVENTS"), DropTable("NVTX_EVENTS"), ShiftTime(1))
	check("rename kernel", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = demangledName AND shortName = s.id AND mangledName = s.id WHERE value = 'nvjet'", "5", RenameKernel("gemm", "nvjet"))
	check("rename kernel", "SELECT count(*) FROM StringIds WHERE value = 'softmax'", "1", RenameKernel("gemm", "softmax"))
	check("pageable", "SELECT srcKind || dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY", "02,20", PageableCopies())
	check("pid", "SELECT DISTINCT globalPid >> 24 & 0xFFFFFF FROM CUPTI_ACTIVITY_KIND_KERNEL", "555", RenamePID(100, 555))
	check("pid", "SELECT DISTINCT printf('%x', globalTid) FROM NVTX_EVENTS", "100022b00022b", RenamePID(100, 555))
	check("pid", "SELECT p.pid || c.processId FROM PROCESSES p, TARGET_INFO_CUDA_CONTEXT_INFO c", "555555", RenamePID(100, 555))
	check("rows", kernelRows, "340.0-400.0 norm", AddRows("CUPTI_ACTIVITY_KIND_MEMCPY", Row{
		"start": Int(0), "end": Int(1), "deviceId": Int(0), "contextId": Int(1), "streamId": Int(7), "bytes": Int(1), "copyKind": Int(1),
	}), EditRows("CUPTI_ACTIVITY_KIND_KERNEL", func(r Row, text func(Value) string) bool {
		r["start"] = Int(340 * us)
		r["demangledName"] = ID("norm")
		return text(r["shortName"]) == "gemm" && r["end"] == Int(400*us)
	}))

	if err := Rewrite(src, filepath.Join(t.TempDir(), "x"), RenamePID(1, 100)); err == nil {
		t.Error("renamed a pid to one that is taken")
	}
	if err := Rewrite(src, filepath.Join(t.TempDir(), "x"), AddRows("StringIds", Row{"no": Int(1)})); err == nil {
		t.Error("added a row with a column that is not there")
	}
}

func TestRewriteLeavesSourceAndRepeats(t *testing.T) {
	src := Tiny(WAL()).WriteTB(t)
	before, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	edits := []Edit{ScaleKernels(func(string) bool { return true }, 1.04), RenameKernel("norm", "rms")}
	a, b := rewritten(t, src, edits...), rewritten(t, src, edits...)
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(x) != string(y) {
		t.Error("two rewrites differ")
	}
	after, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the source changed")
	}
	if n := text(t, open(t, a), "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"); n != "13" {
		t.Errorf("%s kernels: the log was not read", n)
	}
}
