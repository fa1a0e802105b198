package ncu

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/report"
)

// read writes each text as a file of its own and reads them all.
func read(tb testing.TB, texts ...string) (*Data, []file.Input) {
	tb.Helper()
	var files []file.Input
	dir := tb.TempDir()
	for i, text := range texts {
		path := filepath.Join(dir, fmt.Sprintf("%d.csv", i))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
		in, err := file.New(path, filepath.Base(path))
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, in)
	}
	d, err := Read(context.Background(), files)
	if err != nil {
		tb.Fatal(err)
	}
	for _, in := range files {
		if t := in.Tally; t.Records != t.Understood+t.Known+t.Unknown {
			tb.Errorf("%d records are %d understood, %d known and %d unknown", t.Records, t.Understood, t.Known, t.Unknown)
		}
	}
	return d, files
}

func (d *Data) codes() string {
	var list []string
	for _, w := range d.Warnings() {
		list = append(list, w.Code)
	}
	return strings.Join(list, " ")
}

// wantValue checks a value that may be unknown; want NaN for unknown.
func wantValue(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	switch {
	case got == nil && math.IsNaN(want):
	case got == nil:
		t.Errorf("%s is unknown, want %v", what, want)
	case math.IsNaN(want):
		t.Errorf("%s = %v, want unknown", what, *got)
	case math.Abs(*got-want) > 1e-12*math.Abs(want):
		t.Errorf("%s = %v, want %v", what, *got, want)
	}
}

const (
	pctOfPeak = ".avg.pct_of_peak_sustained_elapsed"
	rawHead   = `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",` +
		`"dram__bytes_read.sum","dram__bytes_write.sum","gpu__dram_throughput` + pctOfPeak + `","gpu__time_duration.sum","launch__registers_per_thread","sm__throughput` + pctOfPeak + `"` + "\n"
	rawUnits   = `"","","","","","","","","","","","Mbyte","Kbyte","%","us","register/thread","%"` + "\n"
	rawUnits22 = `"","","","","","","","","","","","Mbyte","Kbyte","%","usecond","register/thread","%"` + "\n"
	longHead   = `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"` + "\n"
)

// rawRow is a launch: 4 MB read, 500 kB written, DRAM 45 %, 3 µs, 32 registers, SM 30 %.
func rawRow(id int, kernel string) string {
	return fmt.Sprintf(`"%d","7","python3","host","%s","1","7","(128, 1, 1)","(10, 2, 1)","0","9.0","4.00","500.00","45.00","3.00","32","30.00"`+"\n", id, kernel)
}

func longRow(id int, kernel, metric, unit, value string) string {
	return fmt.Sprintf(`"%d","7","python3","host","%s","1","7","(128, 1, 1)","(10, 2, 1)","0","9.0","Section","%s","%s","%s",`+"\n", id, kernel, metric, unit, value)
}

// longLaunch is the same launch on a details page, in the words of today or of 2022.
func longLaunch(id int, kernel string, old bool) string {
	sm, us, rate := "Compute (SM) Throughput", "us", "Gbyte/s"
	if old {
		sm, us, rate = "SM [%]", "usecond", "Gbyte/second"
	}
	return longRow(id, kernel, "Duration", us, "3.00") + longRow(id, kernel, sm, "%", "30.00") + longRow(id, kernel, "DRAM Throughput", "%", "45.00") +
		longRow(id, kernel, "Memory Throughput", "%", "46.00") + longRow(id, kernel, "Memory Throughput", rate, "1,500.00") + longRow(id, kernel, "Registers Per Thread", "register/thread", "32") +
		fmt.Sprintf(`"%d","7","python3","host","%s","1","7","(128, 1, 1)","(10, 2, 1)","0","9.0","Section","","","","Rule","WRN","says ""much"", in words"`+"\n", id, kernel)
}

// 4.5 MB in 3 µs are 1.5 TB/s.
func TestRawPage(t *testing.T) {
	for _, units := range []string{rawUnits, rawUnits22} {
		d, files := read(t, "==PROF== Connected to process 7 (/usr/bin/python3)\nhello from the program\n"+rawHead+units+rawRow(0, "a")+rawRow(1, "b")+rawRow(2, "a")+"==PROF== Disconnected from process 7\n")
		if len(d.Launches) != 3 || len(d.Kernels) != 2 || d.Kernels[0].Name != "a" || len(d.Kernels[0].Launches) != 2 {
			t.Fatalf("%d launches, kernels %+v", len(d.Launches), d.Kernels)
		}
		// Records: two lines of ncu, header, units, the program's line, three launches.
		if got, want := *files[0].Tally, (file.Tally{Format: "raw page", Records: 8, Understood: 3, Known: 4, Unknown: 1}); got != want {
			t.Errorf("tally %+v, want %+v", got, want)
		}
		k := d.Kernels[0]
		wantValue(t, "duration", k.Duration, 6000)
		wantValue(t, "throughput", k.Throughput, 1.5e12)
		wantValue(t, "SM", k.Get(SMRatio), 0.30)
		wantValue(t, "DRAM", k.Get(DRAMRatio), 0.45)
		wantValue(t, "registers", k.Get(Registers), 32)
		wantValue(t, "memory", k.Get(MemoryRatio), math.NaN())
		if k.Grid != "(10, 2, 1)" || k.Block != "(128, 1, 1)" || d.Launches[0].CC != "9.0" || d.Launches[0].Process != "python3" {
			t.Errorf("launch %+v", d.Launches[0])
		}
	}
}

func TestDetailsPage(t *testing.T) {
	for _, old := range []bool{false, true} {
		d, files := read(t, longHead+longLaunch(0, "f<(int)8>(int)", old)+longLaunch(1, "f<(int)8>(int)", old)+longLaunch(2, "g", old))
		if len(d.Launches) != 3 || len(d.Kernels) != 2 || d.Kernels[0].Name != "f<8>(int)" {
			t.Fatalf("%d launches, kernels %+v", len(d.Launches), d.Kernels)
		}
		// Header and three rules hold nothing to take; six metrics of each launch do.
		if got, want := *files[0].Tally, (file.Tally{Format: "details page", Records: 22, Understood: 18, Known: 4}); got != want {
			t.Errorf("tally %+v, want %+v", got, want)
		}
		k := d.Kernels[0]
		wantValue(t, "duration", k.Duration, 6000)
		wantValue(t, "throughput", k.Throughput, 1.5e12)
		wantValue(t, "SM", k.Get(SMRatio), 0.30)
		wantValue(t, "DRAM", k.Get(DRAMRatio), 0.45)
		wantValue(t, "memory", k.Get(MemoryRatio), 0.46)
		if d.codes() != "" {
			t.Errorf("warnings %s", d.codes())
		}
	}
}

// Raw and details pages of one report, and the same report in the spelling of another version, are one launch each.
func TestPagesOfOneReportCountOnce(t *testing.T) {
	raw := rawHead + rawUnits + rawRow(0, "void f<8>(int)") + rawRow(1, "void f<8>(int)")
	long := longHead + longLaunch(0, "void f<(int)8>(int)", true) + longLaunch(1, "void f<(int)8>(int)", true)
	d, _ := read(t, raw, long, strings.ReplaceAll(long, "(int)8", "8"))
	if len(d.Launches) != 2 || d.Pages != 4 || len(d.Kernels) != 1 {
		t.Fatalf("%d launches of %d kernels, %d on further pages", len(d.Launches), len(d.Kernels), d.Pages)
	}
	k := d.Kernels[0]
	wantValue(t, "memory, which the raw page lacks", k.Get(MemoryRatio), 0.46)
	wantValue(t, "bytes read, which the details page lacks", k.Get(DRAMRead), 4e6)

	// Another run: the same process number and launch, and another duration.
	d, _ = read(t, raw, strings.ReplaceAll(raw, `"3.00"`, `"3.02"`))
	if len(d.Launches) != 4 || d.Pages != 0 {
		t.Errorf("two runs are %d launches", len(d.Launches))
	}
	// A file of which two pages are one after the other, as a shell appends them.
	if d, _ = read(t, raw+long); len(d.Launches) != 2 || len(d.Kernels) != 1 {
		t.Errorf("two pages in one file are %d launches", len(d.Launches))
	}
	// Without a process nothing is known to be the same.
	bare := "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"us\"\n\"0\",\"f\",\"3.0\"\n"
	if d, _ = read(t, bare, bare); len(d.Launches) != 2 {
		t.Errorf("%d launches", len(d.Launches))
	}
}

// A page that a spreadsheet wrote with tabs is the same page: its units row begins with a tab.
func TestTabs(t *testing.T) {
	d, files := read(t, "ID\tKernel Name\tgpu__time_duration.sum\n\t\tus\n0\tf\t3.0\n")
	if len(d.Launches) != 1 || d.codes() != "" || files[0].Tally.Unknown != 0 {
		t.Fatalf("%d launches, warnings %q, %+v", len(d.Launches), d.codes(), *files[0].Tally)
	}
	wantValue(t, "duration", d.Kernels[0].Duration, 3000)
}

// Of two pages the one with more digits counts.
func TestMoreDigitsWin(t *testing.T) {
	raw := rawHead + rawUnits + rawRow(0, "f")
	long := longHead + longRow(0, "f", "gpu__time_duration.sum", "ns", "3,004")
	for _, order := range [][]string{{raw, long}, {long, raw}} {
		d, _ := read(t, order...)
		if len(d.Launches) != 1 {
			t.Fatalf("%d launches", len(d.Launches))
		}
		wantValue(t, "duration", d.Kernels[0].Duration, 3004)
	}
}

// A launch that lacks a value is in no mean of it; without durations the mean is plain.
func TestMeans(t *testing.T) {
	head := "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"sm__throughput" + pctOfPeak + "\",\"lts__t_sector_hit_rate.pct\"\n\"\",\"\",\"us\",\"%\",\"%\"\n"
	d, _ := read(t, head+"\"0\",\"f\",\"1\",\"10\",\"n/a\"\n\"1\",\"f\",\"3\",\"50\",\"80\"\n\"2\",\"g\",\"n/a\",\"10\",\"\"\n\"3\",\"g\",\"\",\"50\",\"\"\n")
	f, g := d.Kernels[0], d.Kernels[1]
	wantValue(t, "weighted", f.Get(SMRatio), 0.40) // (10·1 + 50·3) / 4
	wantValue(t, "hits", f.Get(L2Hits), 0.80)
	wantValue(t, "plain", g.Get(SMRatio), 0.30)
	wantValue(t, "duration", g.Duration, math.NaN())
	if f.Bound() != Unknown || f.Classification() != "unknown" {
		t.Errorf("without DRAM throughput the bound is %s, %s", f.Bound(), f.Classification())
	}
}

// Bytes come from the sum, from both ways, or from rates; never from one way alone.
func TestThroughput(t *testing.T) {
	for _, c := range []struct {
		columns, units, values string
		want                   float64
	}{
		{`"dram__bytes.sum"`, `"Kbyte"`, `"8"`, 4e9}, // 8 kB in 2 µs
		{`"dram__bytes_read.sum","dram__bytes_write.sum"`, `"Kbyte","byte"`, `"6","2,000"`, 4e9},
		{`"dram__bytes_read.sum"`, `"Kbyte"`, `"6"`, math.NaN()},
		{`"dram__bytes.sum.per_second"`, `"Gbyte/second"`, `"4.5"`, 4.5e9},
		{`"dram__bytes_read.sum.per_second","dram__bytes_write.sum.per_second"`, `"Gbyte/s","Mbyte/s"`, `"4","500"`, 4.5e9},
		{`"dram__bytes_read.sum.per_second"`, `"Gbyte/s"`, `"4"`, math.NaN()},
		{`"dram__bytes.sum"`, `"furlong"`, `"8"`, math.NaN()},
	} {
		d, _ := read(t, `"ID","Kernel Name","gpu__time_duration.sum",`+c.columns+"\n"+`"","","us",`+c.units+"\n"+`"0","f","2.0",`+c.values+"\n")
		wantValue(t, c.columns, d.Kernels[0].Throughput, c.want)
		if strings.Contains(c.units, "furlong") != strings.Contains(d.codes(), "ncu_units") {
			t.Errorf("%s: warnings %s", c.units, d.codes())
		}
	}
}

// The names of columns may state the units: then no row below them has to, and none is missed.
func TestUnitsInNames(t *testing.T) {
	d, _ := read(t, `"ID","Kernel Name","gpu__time_duration.sum [us]","dram__bytes.sum [Kbyte]"`+"\n"+`"0","f","2.0","8"`+"\n")
	wantValue(t, "throughput", d.Kernels[0].Throughput, 4e9) // 8 kB in 2 µs
	if d.codes() != "" {
		t.Errorf("warnings %s", d.codes())
	}
	d, _ = read(t, `"ID","Kernel Name","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed [%]"`+"\n"+`"0","f","2.0","8"`+"\n")
	wantValue(t, "SM", d.Kernels[0].Get(SMRatio), 0.08)
	if !strings.Contains(d.codes(), "ncu_no_units") {
		t.Errorf("warnings %s", d.codes())
	}
}

// The rule, at its edges: SM and DRAM throughput, the busiest memory, and what they make of a kernel.
func TestBound(t *testing.T) {
	unknown := math.NaN()
	for _, c := range []struct {
		sm, dram, memory float64
		bound            Bound
		classification   string
	}{
		{0.65, 0.60, 0.60, Balanced, "balanced"}, // 5 percentage points are not more than 5
		{0.651, 0.60, 0.60, Compute, "compute_bound"},
		{0.60, 0.651, 0.651, Memory, "memory_bound"},
		{0.2526, 0.2141, 0.2141, Latency, "balanced"},
		{0.2526, 0.2026, 0.2141, Latency, "balanced"}, // their difference is 0.05 and a rounding error
		{0.60, 0.20, 0.60, Latency, "compute_bound"},  // neither exceeds 60 %
		{0.1207, 0.1029, 0.9399, Memory, "balanced"},  // lives in the L2 cache
		{0.90, 0.10, unknown, Compute, "compute_bound"},
		{0.50, 0.10, unknown, Latency, "compute_bound"},
		{unknown, 0.10, 0.10, Unknown, "unknown"},
		{0.10, unknown, 0.10, Unknown, "unknown"},
	} {
		k := Kernel{}
		for f, v := range map[Field]float64{SMRatio: c.sm, DRAMRatio: c.dram, MemoryRatio: c.memory} {
			if !math.IsNaN(v) {
				k.mean[f] = &v
			}
		}
		if k.Bound() != c.bound || k.Classification() != c.classification {
			t.Errorf("SM %v, DRAM %v, memory %v: %s, %s; want %s, %s", c.sm, c.dram, c.memory, k.Bound(), k.Classification(), c.bound, c.classification)
		}
	}
}

// A file in German: decimal commas, points between thousands.
func TestEuropeanNumbers(t *testing.T) {
	d, files := read(t, longHead+longRow(0, "f", "Duration", "us", "1.006,75")+longRow(0, "f", "DRAM Throughput", "%", "19,66")+longRow(0, "f", "Compute (SM) Throughput", "%", "9,15")+
		longRow(0, "f", "dram__bytes.sum", "byte", "2.508.800")+longRow(0, "f", "Registers Per Thread", "register/thread", "32"))
	k := d.Kernels[0]
	wantValue(t, "duration", k.Duration, 1006750)
	wantValue(t, "DRAM", k.Get(DRAMRatio), 0.1966)
	wantValue(t, "bytes", k.Get(DRAMBytes), 2508800)
	if files[0].Tally.Format != "details page, decimal commas" || d.codes() != "" {
		t.Errorf("format %q, warnings %s", files[0].Tally.Format, d.codes())
	}
	// One number that contradicts two: left out, and said.
	d, _ = read(t, longHead+longRow(0, "f", "Duration", "us", "6.75")+longRow(0, "f", "DRAM Throughput", "%", "19.66")+longRow(0, "f", "Compute (SM) Throughput", "%", "9,15"))
	wantValue(t, "SM", d.Kernels[0].Get(SMRatio), math.NaN())
	if d.codes() != "ncu_numbers" {
		t.Errorf("warnings %s", d.codes())
	}
}

// Spreadsheets save with semicolons, PowerShell in UTF-16; compressed files are unpacked by package file.
func TestOtherWritings(t *testing.T) {
	text := rawHead + rawUnits + rawRow(0, "f") + rawRow(1, "g")
	semicolons := strings.ReplaceAll(strings.ReplaceAll(text, `","`, `;`), `"`, "")
	var wide bytes.Buffer
	for _, u := range utf16.Encode([]rune("\uFEFF" + text)) {
		wide.Write([]byte{byte(u), byte(u >> 8)})
	}
	for name, text := range map[string]string{"semicolons": semicolons, "UTF-16": wide.String(), "mark": "\uFEFF" + text, "carriage returns": strings.ReplaceAll(text, "\n", "\r\n")} {
		d, files := read(t, text)
		if head, err := files[0].Head(); err != nil || !Is("x", head) {
			t.Errorf("%s: not recognised (%v)", name, err)
		}
		if len(d.Launches) != 2 {
			t.Errorf("%s: %d launches", name, len(d.Launches))
			continue
		}
		wantValue(t, name, d.Kernels[0].Throughput, 1.5e12)
	}
}

// A page without IDs: a metric that comes again is of another launch.
func TestNoIDs(t *testing.T) {
	row := func(kernel, metric, value string) string {
		return fmt.Sprintf("\"7\",%q,%q,\"us\",%q\n", kernel, metric, value)
	}
	d, _ := read(t, `"Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"`+"\n"+row("f", "Duration", "1")+row("f", "Duration", "2")+row("g", "Duration", "4")+row("f", "Duration", "8"))
	if len(d.Launches) != 4 || len(d.Kernels) != 2 {
		t.Fatalf("%d launches of %d kernels", len(d.Launches), len(d.Kernels))
	}
	wantValue(t, "duration", d.Kernels[0].Duration, 11000)
}

// A raw page that lost its units row: percentages say what they are, everything else is unknown.
func TestNoUnitsRow(t *testing.T) {
	d, _ := read(t, rawHead+rawRow(0, "f"))
	k := d.Kernels[0]
	wantValue(t, "SM", k.Get(SMRatio), 0.30)
	wantValue(t, "duration", k.Duration, math.NaN())
	wantValue(t, "throughput", k.Throughput, math.NaN())
	if !strings.Contains(d.codes(), "ncu_no_units") {
		t.Errorf("warnings %s", d.codes())
	}
}

// Files that were cut, and into which another program wrote.
func TestDamagedFiles(t *testing.T) {
	raw := rawHead + rawUnits + rawRow(0, "f") + rawRow(1, "f")
	for cut := len(rawHead + rawUnits + rawRow(0, "f")); cut < len(raw); cut++ {
		if d, _ := read(t, raw[:cut]); len(d.Launches) != 1 && cut < len(raw)-1 {
			t.Errorf("cut after %d of %d bytes: %d launches", cut, len(raw), len(d.Launches))
		}
	}
	d, files := read(t, rawHead+rawUnits+rawRow(0, "f")+"INFO: the server says \"something\n"+rawRow(1, "f")+`"2","7","python3","host","f<""`+"\n"+rawRow(3, "f")+"\x00\xff\n")
	if len(d.Launches) != 3 || files[0].Tally.Unknown != 3 || !strings.Contains(d.codes(), "ncu_broken") {
		t.Errorf("%d launches, tally %+v, warnings %s", len(d.Launches), *files[0].Tally, d.codes())
	}
	d, _ = read(t, rawHead+rawUnits+strings.Repeat("x", 3<<20)+"\n"+rawRow(0, "f"))
	if len(d.Launches) != 1 || !strings.Contains(d.codes(), "ncu_long_lines") {
		t.Errorf("%d launches, warnings %s", len(d.Launches), d.codes())
	}
	// A rule's description with line breaks is one record.
	d, files = read(t, longHead+longRow(0, "f", "Duration", "us", "3.0")+`"0","7","p","h","f","1","7","","","0","9.0","S","","","","R","WRN","one`+"\n"+`two, ""three""`+"\n"+`four"`+"\n"+longRow(1, "f", "Duration", "us", "4.0"))
	if len(d.Launches) != 2 || files[0].Tally.Unknown != 0 {
		t.Errorf("%d launches, tally %+v", len(d.Launches), *files[0].Tally)
	}
}

// What ncu itself says is repeated in explain's words, with the remedy.
func TestMessages(t *testing.T) {
	for text, want := range map[string]string{
		"==PROF== Connected to process 1 (x)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n": "ncu_permission",
		"==PROF== Connected to process 1 (x)\n==WARNING== No kernels were profiled.\n":                          "ncu_no_kernels",
		"==ERROR== Option '--section x' did not match any section.\n":                                           "ncu_errors",
		rawHead: "ncu_no_kernels",
		"\"Process ID\",\"Kernel Name\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"\n\"1\",\"f\",\"2\",\"S\",\"Duration\",\"us\",\"1\",\"3\",\"2\"\n": "ncu_summary_page",
	} {
		if !Is("x", []byte(text)) {
			t.Errorf("not recognised: %q", text)
		}
		d, files := read(t, text)
		if !strings.Contains(d.codes(), want) || len(d.Launches) != 0 || files[0].Tally.Understood != 0 {
			t.Errorf("%q: warnings %s, %d launches", text, d.codes(), len(d.Launches))
		}
	}
}

func TestIs(t *testing.T) {
	for _, text := range []string{"", "hello\n", "Time (%),Total Time (ns),Instances,Name\n", "kernel_id,classification\nkernel_0001,balanced\n", "{\"a\": \"Kernel Name\"}", "INFO server\nINFO more\n==PROF== x\n",
		"# HELP dram__bytes x\n", "Start (ns),Kernel Name,Kernel Dur (ns)\n"} {
		if Is("x.csv", []byte(text)) {
			t.Errorf("%q is taken for a page of ncu", text)
		}
	}
}

// The environment: devices of raw pages, else what the launches say.
func TestEnvironment(t *testing.T) {
	head := `"ID","Kernel Name","Device","device__attribute_display_name","device__attribute_multiprocessor_count","device__attribute_fb_bus_width","device__attribute_max_mem_frequency_khz","device__attribute_clock_rate","device__attribute_compute_capability_major","device__attribute_compute_capability_minor","gpu__time_duration.sum"` + "\n" +
		`"","","","","","","","","","","us"` + "\n"
	d, _ := read(t, head+`"0","f","1","NVIDIA A10G","80","384","6,251,000","1,710,000","8","6","1.5"`+"\n")
	var e report.Environment
	d.Environment(&e)
	if len(e.GPUs) != 1 || e.GPUs[0].Device != 1 || *e.GPUs[0].Name != "NVIDIA A10G" || *e.GPUs[0].SMs != 80 || *e.GPUs[0].ComputeCap != "8.6" {
		t.Fatalf("GPUs %+v", e.GPUs)
	}
	wantValue(t, "bandwidth", e.GPUs[0].MemoryBandwidth, 600.096e9) // 2 · 6.251 GHz · 48 bytes: 600 GB/s, says the data sheet
	roof := d.Roofs()[0]
	wantValue(t, "fp32", limitOf(&roof, "fp32"), 35.0208e12) // 80 SMs · 128 lanes · 2 · 1.71 GHz: 35 TFLOP/s, says the data sheet
	wantValue(t, "fp64", limitOf(&roof, "fp64"), 0.5472e12)
	wantValue(t, "tensor cores, from the table", limitOf(&roof, "tensor_fp16"), 70e12)
	wantValue(t, "fp8", limitOf(&roof, "tensor_fp8"), math.NaN())
	before := e
	d.Environment(&e) // what a trace says stands
	if len(e.GPUs) != len(before.GPUs) {
		t.Errorf("GPUs %+v", e.GPUs)
	}
	// A name that is none is not repeated, and has no peaks.
	d, _ = read(t, head+`"0","f","1","</td><script>","80","384","6251000","1710000","99","6","1.5"`+"\n")
	e = report.Environment{}
	d.Environment(&e)
	if e.GPUs[0].Name != nil || len(d.Roofs()[0].Limits()) > 0 {
		t.Errorf("GPUs %+v, roofs %+v", e.GPUs, d.Roofs())
	}
	d, _ = read(t, longHead+longLaunch(0, "f", false))
	e = report.Environment{}
	d.Environment(&e)
	if len(e.GPUs) != 1 || e.GPUs[0].Name != nil || *e.GPUs[0].ComputeCap != "9.0" {
		t.Errorf("GPUs %+v", e.GPUs)
	}
}

// limitOf is a device's peak of a data type, nil where unknown.
func limitOf(r *Roof, precision string) *float64 {
	for _, l := range r.Limits() {
		if l.Precision == precision {
			return &l.Value
		}
	}
	return nil
}

// What llm-perf-opt's folders are called.
func TestKernelID(t *testing.T) {
	const hash = "67bdb7e29d1bb4e0ca0aec954ef18af3"
	for path, want := range map[string]string{
		"run/kernel_0001_" + hash + "/ncu.details.csv": "kernel_0001_" + hash,
		"dsocr_kernel_0002.details.csv":                "kernel_0002",
		"kernels.csv":                                  "",
		"kernel_12.csv":                                "",
	} {
		if got := folderOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	d, _ := read(t, rawHead+rawUnits+rawRow(0, "f")+rawRow(1, "g")+rawRow(2, "g"))
	if got := d.Kernels[0].ID; got != "kernel_0001_b2f5ff47436671b6e533d8dc3614845d" { // MD5 of "g"
		t.Errorf("id %s", got)
	}
}

// Long names stay apart and are bounded.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("漢", 20000)
	d, _ := read(t, rawHead+rawUnits+rawRow(0, long+"a")+rawRow(1, long+"b"))
	if len(d.Kernels) != 2 || d.Kernels[0].Name == d.Kernels[1].Name || len(d.Kernels[0].Name) > longestName+40 {
		t.Errorf("%d kernels, names of %d bytes", len(d.Kernels), len(d.Kernels[0].Name))
	}
}

func TestExpertsAreNotTheTopKOfAttention(t *testing.T) {
	for name, want := range map[string]bool{
		"void vllm::topKPerRowDecode<512>(float const*)":                             false, // DeepSeek's indexer
		"void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(float*)": false,
		"void vllm::moe::topkGatingSoftmax<4, 128, 4, 16, 32, int>(float const*)":    true,
		"_topk_forward":    true,
		"fused_moe_kernel": true,
	} {
		k := Kernel{Full: name, Info: kernelname.Classify(name)}
		if k.MoE() != want {
			t.Errorf("%s (%s): %v", name, k.Info.Category, !want)
		}
	}
}
