package kernelname

import (
	"database/sql"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// sharedDir holds real traces beside the checkout; the tests below skip without it.
const sharedDir = "../../../../shared"

func sharedFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sharedDir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("../shared/%s is not beside the module", pattern)
	}
	return files
}

func trace(t *testing.T, name string) string {
	t.Helper()
	return sharedFiles(t, filepath.Join("traces", name+".sqlite"))[0]
}

// namesIn returns time or rows by text: the query gives both. A file without
// the table gives none.
func namesIn(t *testing.T, file, query string) map[string]int64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&immutable=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out := map[string]int64{}
	rows, err := db.Query(query)
	if err != nil {
		return out
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		out[name] += n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	kernelTimes = `select s.value, sum(k.end - k.start) from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName group by 1`
	rangeCounts = `select coalesce(n.text, s.value), count(*) from NVTX_EVENTS n left join StringIds s on s.id = n.textId where coalesce(n.text, s.value) is not null group by 1`
)

// TestKernelsOfRealTraces: of all kernel time in the traces of deep learning
// (Rodinia and Mordred are none), at most 5 % is Other. Within one export no two
// kernels become one, and what is displayed tells nearly all of them apart.
func TestKernelsOfRealTraces(t *testing.T) {
	var total, unknown int64
	for _, file := range sharedFiles(t, "traces/*.sqlite") {
		base := filepath.Base(file)
		var inFile, inFileUnknown int64
		canonical, display := map[string]string{}, map[string]bool{}
		for name, ns := range namesIn(t, file, kernelTimes) {
			info := Classify(name)
			inFile += ns
			if info.Category == Other {
				inFileUnknown += ns
				t.Logf("%s: other: %s", base, info.Display)
			}
			if again := Canonical(info.Canonical); again != info.Canonical {
				t.Errorf("%q → %q → %q", name, info.Canonical, again)
			}
			if twin, ok := canonical[info.Canonical]; ok {
				t.Errorf("%s: %q and %q are both %q", base, name, twin, info.Canonical)
			}
			canonical[info.Canonical] = name
			display[info.Display] = true
		}
		if len(display)*10 < len(canonical)*9 {
			t.Errorf("%s: %d names, %d displayed", base, len(canonical), len(display))
		}
		if inFile == 0 || strings.HasPrefix(base, "rodinia") || strings.HasPrefix(base, "mordred") {
			continue
		}
		t.Logf("%s: %.2f %% of %d ns classified", base, 100-100*float64(inFileUnknown)/float64(inFile), inFile)
		total += inFile
		unknown += inFileUnknown
	}
	if float64(unknown) > 0.05*float64(total) {
		t.Errorf("%d of %d ns are Other", unknown, total)
	}
	t.Logf("all: %.4f %% classified", 100-100*float64(unknown)/float64(total))
}

func TestDistinctRangesOfRealTraces(t *testing.T) {
	for name, want := range map[string]int{ // counts of facts/nsys-llm-explainer.md 2.2
		"nsysai_mfu_2gpu_before": 93,
		"nsysai_mfu_2gpu_after":  89,
		"nsysai_h100_2gpu_1s":    176,
	} {
		keys := map[string]bool{}
		for text := range namesIn(t, trace(t, name), rangeCounts) {
			key := rangeCanonical(text)
			keys[key] = true
			if again := rangeCanonical(key); again != key {
				t.Errorf("%q → %q → %q", text, key, again)
			}
		}
		if len(keys) != want {
			t.Errorf("%s: %d distinct ranges, want %d", name, len(keys), want)
		}
	}
}

// TestTwoExportsOfOneCaptureHaveTheSameNames compares two exporters' files.
func TestTwoExportsOfOneCaptureHaveTheSameNames(t *testing.T) {
	for _, pair := range [][2]string{
		{"cs336_hoponga_exp2023_4", "cs336_hoponga_exp2024_2"},
		{"mordred_native_old_b", "mordred_exp2023_4"},
	} {
		a, b := canonicalNames(t, pair[0]), canonicalNames(t, pair[1])
		if len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("%v: %d and %d names: %v %v", pair, len(a), len(b), a, b)
		}
	}
}

func canonicalNames(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	for raw := range namesIn(t, trace(t, name), kernelTimes) {
		out = append(out, Canonical(raw))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestNsightComputeVersionsAgree compares the kernel names of one ncu report as
// 2022.3 and 2024.2 export it.
func TestNsightComputeVersionsAgree(t *testing.T) {
	for _, report := range []string{"gemm_263b2.details", "gemm_26b45.raw"} {
		old := ncuNames(t, sharedFiles(t, "ncu/"+report+".22.csv")[0])
		recent := ncuNames(t, sharedFiles(t, "ncu/"+report+".24b.csv")[0])
		if len(old) == 0 || !slices.Equal(old, recent) {
			t.Errorf("%s: %q and %q", report, old, recent)
		}
	}
}

func ncuNames(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column, names := -1, []string(nil)
	for _, rec := range records {
		if column < 0 {
			column = slices.Index(rec, "Kernel Name")
			continue
		}
		if column < len(rec) && rec[column] != "" {
			names = append(names, Canonical(rec[column]))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
