package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// profile is a trace of torch.profiler: steps of 20 kernels a 50 µs, launched 10 µs apart; every fifth is of attention
// and takes slower times as long.
func profile(steps int, slower float64) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","numSms":132}],"traceEvents":[`)
	event := func(category, name string, pid int, at, length float64, args string) {
		fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":7,"ts":%.3f,"dur":%.3f,"args":{%s}},`, category, name, pid, at, length, args)
	}
	gpu, correlation := 0.0, 0
	for s := range steps {
		host := max(gpu, 1000)
		gpu = host + 30
		for k := range 20 {
			correlation++
			name, length := fmt.Sprintf("gemm_%d", k%4), 50.0
			if k%5 == 0 {
				name, length = "flash_fwd_kernel", 50*slower
			}
			length += float64((s*7+k*3)%5) * 0.01 // no two steps are equal to the nanosecond
			event("cuda_runtime", "cudaLaunchKernel", 77, host+float64(k)*10, 5, fmt.Sprintf(`"correlation":%d`, correlation))
			event("kernel", name, 0, gpu, length, fmt.Sprintf(`"device":0,"context":1,"stream":7,"correlation":%d,"grid":[132,1,1],"block":[128,1,1]`, correlation))
			gpu += length + 1
		}
		event("user_annotation", fmt.Sprintf("ProfilerStep#%d", s), 77, host-1, 230, "")
	}
	fmt.Fprint(&b, `{"name":"process_name","ph":"M","pid":77,"tid":0,"args":{"name":"python"}}],"displayTimeUnit":"ms"}`)
	return b.Bytes()
}

// TestPyTorchProfiles: by hand, attention takes 4 × 50 µs of a step of 30 + 20 × 51 µs; 30 % more of it are 60 µs,
// +5.7 % of the step.
func TestPyTorchProfiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var packed bytes.Buffer
	wr := gzip.NewWriter(&packed)
	if _, err := wr.Write(profile(24, 1.3)); err != nil {
		t.Fatal(err)
	}
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
	base, head := put("base.json", profile(24, 1)), put("head.pt.trace.json.gz", packed.Bytes())
	call := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		return code, out.String() + errs.String()
	}
	if code, said := call(base, "--out", filepath.Join(dir, "report")); code != exitOK {
		t.Fatalf("exit %d: %s", code, said)
	}
	var r struct {
		Trace struct{ Kind, Source string }
		Unit  struct{ Kind, Name string }
	}
	if err := json.Unmarshal(read(t, filepath.Join(dir, "report/report.json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Trace.Kind != "pytorch-profiler" || r.Trace.Source != "pytorch" || r.Unit.Kind != "nvtx" || r.Unit.Name != "ProfilerStep#N" {
		t.Errorf("%+v", r)
	}
	code, said := call("diff", base, head)
	if code != exitFail || !strings.Contains(said, "flash_fwd") || !strings.Contains(said, "+5.") {
		t.Errorf("diff: exit %d: %s", code, said)
	}
	if code, said := call("diff", base, put("longer.json", profile(36, 1))); code != exitOK {
		t.Errorf("a longer recording of the same: exit %d: %s", code, said)
	}
	if code, said := call("diff", base, "../../testdata/base.sqlite"); code != exitInconclusive || !strings.Contains(said, "source differs") {
		t.Errorf("against an export of nsys: exit %d: %s", code, said)
	}
	cut := profile(24, 1)
	if code, said := call(put("cut.json", cut[:len(cut)*2/3])); code != exitOK || !strings.Contains(said, "cut off") {
		t.Errorf("cut: exit %d: %s", code, said)
	}
	if code, said := call(put("other.json", []byte(`{"a":1}`))); code != exitInput {
		t.Errorf("other JSON: exit %d: %s", code, said)
	}
	for pair, fields := range map[[2]string]string{{"hta_control", "hta_test"}: "gpu", {"h100_qwen", "mi300_qwen"}: "gpu,source"} {
		files := []string{"../../../shared/kineto/" + pair[0] + ".json.gz", "../../../shared/kineto/" + pair[1] + ".json.gz"}
		if _, err := os.Stat(files[0]); err != nil {
			t.Logf("%s is not here", files[0])
			continue
		}
		if code, said := call("diff", files[0], files[1]); code != exitInconclusive || !strings.Contains(said, "explain diff --study ") {
			t.Errorf("%v: exit %d: %s", pair, code, said)
		}
		if code, said := call("diff", files[0], files[1], "--study", fields); code != exitOK || !strings.Contains(said, "STUDY of "+strings.ReplaceAll(fields, ",", ", ")+": step × ") {
			t.Errorf("%v, studied: exit %d: %s", pair, code, said)
		}
	}
	if code, said := call("diff", base, put("one.json", profile(1, 1))); code != exitInconclusive {
		t.Errorf("a single step: exit %d: %s", code, said)
	}
}

// TestOnlyTheReaderKnowsKineto: above the reader a capture has capabilities, not a maker.
func TestOnlyTheReaderKnowsKineto(t *testing.T) {
	cmd := exec.Command("git", "grep", "-il", "kineto", "--", "*.go")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	for _, name := range strings.Fields(string(out)) {
		if !strings.HasPrefix(name, "analyze/internal/trace/") && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s names Kineto", name)
		}
	}
}
