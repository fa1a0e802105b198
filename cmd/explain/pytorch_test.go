package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestPyTorchProfiles: by hand, attention takes 4 × 50 µs of a step of 30 + 20 × 51 µs; 30 % more of it are 60 µs,
// +5.7 % of the step.
func TestPyTorchProfiles(t *testing.T) {
	t.Parallel()
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
	if _, err := wr.Write(explaintest.TorchProfile(24, 1.3)); err != nil {
		t.Fatal(err)
	}
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
	base, head := put("base.json", explaintest.TorchProfile(24, 1)), put("head.pt.trace.json.gz", packed.Bytes())
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
	if code, said := call("diff", base, put("longer.json", explaintest.TorchProfile(36, 1))); code != exitOK {
		t.Errorf("a longer recording of the same: exit %d: %s", code, said)
	}
	if code, said := call("diff", base, "../../testdata/base.sqlite"); code != exitInconclusive || !strings.Contains(said, "source differs") {
		t.Errorf("against an export of nsys: exit %d: %s", code, said)
	}
	cut := explaintest.TorchProfile(24, 1)
	if code, said := call(put("cut.json", cut[:len(cut)*2/3])); code != exitOK || !strings.Contains(said, "cut off") {
		t.Errorf("cut: exit %d: %s", code, said)
	}
	if code, said := call(put("other.json", []byte(`{"a":1}`))); code != exitInput {
		t.Errorf("other JSON: exit %d: %s", code, said)
	}
	for pair, study := range map[[2]string][2]string{ // what is asked for, and how the head line says it
		{"hta_control", "hta_test"}: {"gpu", "gpu (NVIDIA A100-PG509-200 → Tesla V100-SXM2-16GB)"},
		{"h100_qwen", "mi300_qwen"}: {"gpu,source", "gpu (unknown on the head, not checked), source (pytorch → pytorch-rocm)"},
	} {
		if pair[0] == "h100_qwen" && !longtest.On() {
			continue
		}
		files := []string{"../../../shared/kineto/" + pair[0] + ".json.gz", "../../../shared/kineto/" + pair[1] + ".json.gz"}
		if _, err := os.Stat(files[0]); err != nil {
			t.Logf("%s is not here", files[0])
			continue
		}
		if code, said := call("diff", files[0], files[1]); code != exitInconclusive || !strings.Contains(said, "explain diff --study ") {
			t.Errorf("%v: exit %d: %s", pair, code, said)
		}
		if code, said := call("diff", files[0], files[1], "--study", study[0]); code != exitOK || !strings.Contains(said, "STUDY of "+study[1]+": step × ") {
			t.Errorf("%v, studied: exit %d: %s", pair, code, said)
		}
	}
	if code, said := call("diff", base, put("one.json", explaintest.TorchProfile(1, 1))); code != exitInconclusive {
		t.Errorf("a single step: exit %d: %s", code, said)
	}
}

// ranksOf are the profiles of the ranks of one run, which meet in an all-reduce after every step; rank 2 computes 200 µs
// longer. Half of them say their rank themselves, as torch writes it, the others in their names alone.
func ranksOf(t *testing.T, names ...string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for rank, name := range names {
		var b bytes.Buffer
		fmt.Fprint(&b, `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"}],"baseTimeNanoseconds":1767189312000000000,`)
		if rank%2 == 0 {
			fmt.Fprintf(&b, `"distributedInfo":{"backend":"nccl","rank":%d,"world_size":%d},`, rank, len(names))
		}
		fmt.Fprint(&b, `"traceEvents":[`)
		correlation := 0
		event := func(category, name string, pid int, at, length float64, args string) {
			fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":7,"ts":%.3f,"dur":%.3f,"args":{%s}},`, category, name, pid, at, length, args)
		}
		launch := func(name string, host, at, length float64) {
			correlation++
			event("cuda_runtime", "cudaLaunchKernel", 77, host, 5, fmt.Sprintf(`"correlation":%d`, correlation))
			event("kernel", name, rank, at, length, fmt.Sprintf(`"device":%d,"context":1,"stream":7,"correlation":%d,"grid":[132,1,1],"block":[128,1,1]`, rank, correlation))
		}
		for step := range 30 {
			at := 1000 + float64(step)*1000
			event("user_annotation", fmt.Sprintf("ProfilerStep#%d", step), 77, at, 900, "")
			late := 0.0
			if rank == 2 {
				late = 200
			}
			launch("gemm", at+10, at+30, 300+late)
			event("cpu_op", "record_param_comms", 77, at+20, 8, fmt.Sprintf(`"Collective name":"allreduce","In msg nelems":4096,"dtype":"BFloat16","Group size":%d,"Process Group Name":"0","Process Group Ranks":"[0, 1, 2, 3]"`, len(names)))
			launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", at+21, at+335+late, 245-late)
		}
		b.Truncate(b.Len() - 1)
		fmt.Fprint(&b, `]}`)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Profiles of several ranks are one run, whether they or their names say which rank they are of; by hand, three ranks wait
// 200 µs for rank 2 in each of 30 all-reduces.
func TestProfilesOfRanksAreOneRun(t *testing.T) {
	for _, names := range [][]string{{"w_rank0.1.pt.trace.json", "w_rank1.1.pt.trace.json", "w_rank2.1.pt.trace.json", "w_rank3.1.pt.trace.json"},
		{"17-TP-0-DECODE.trace.json", "17-TP-1-DECODE.trace.json", "17-TP-2-DECODE.trace.json", "17-TP-3-DECODE.trace.json"}} {
		paths := ranksOf(t, names...)
		var out, errs bytes.Buffer
		code := run(context.Background(), append(paths, "--format", "json"), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		r, err := report.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]float64{"ranks.count": 4, "ranks.missing": 0, "ranks.collectives": 30, "ranks.unmatched": 0} {
			if m := r.Find(id, report.Labels{}); m == nil || m.Value == nil || *m.Value != want {
				t.Errorf("%s: %+v, want %v", id, m, want)
			}
		}
		if m := r.Find("rank.held_up_time", report.Labels{"rank": "2"}); m == nil || *m.Value != 30*200_000 {
			t.Errorf("%+v", m)
		}
	}
}

// What other profilers write is called by its name, with what to do.
func TestOtherProfilersAreNamed(t *testing.T) {
	dir := t.TempDir()
	plane := filepath.Join(dir, "host.xplane.pb")
	if err := os.WriteFile(plane, []byte("\x0a\x10/host:CPU planes"), 0o644); err != nil {
		t.Fatal(err)
	}
	rocm := filepath.Join(dir, "results.db")
	db, err := sql.Open("sqlite", rocm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("create table rocpd_kernel_dispatch_1(id integer, start integer, \"end\" integer)"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	for path, want := range map[string]string{plane: "is a profile of XLA (xplane.pb), which explain does not read; capture",
		rocm: "is a database of ROCm's rocprofv3 (rocpd), which explain does not read; profile with torch.profiler"} {
		var out, errs bytes.Buffer
		code := run(context.Background(), []string{path}, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		if code != exitInput || !strings.Contains(errs.String(), want) {
			t.Errorf("exit %d: %s", code, errs.String())
		}
	}
}

// A scrubbed profile analyses to the same numbers, and neither it nor any output shows a secret that stands in a place
// of the file that is not a name; what looks like a token in a name is replaced.
func TestScrubbedProfile(t *testing.T) {
	t.Parallel()
	p := &planted{where: map[string]string{}}
	text := string(explaintest.TorchProfile(8, 1))
	text = strings.Replace(text, `{"schemaVersion":1,`, `{"schemaVersion":1,"env":{"HF_TOKEN":"`+p.plain("the environment")+`"},"cmd":"`+p.plain("a command")+`","distributedInfo":{"backend":"`+p.plain("a backend")+`","pg_config":[{"pg_name":"`+p.plain("a group's name")+`"}],"rank":0,"world_size":1},`, 1)
	text = strings.Replace(text, `"args":{`, `"args":{"Concrete Inputs":["`+p.plain("an input")+`"],"`+p.plain("a key")+`":1,`, -1)
	text = strings.Replace(text, `"traceEvents":[`, `"traceEvents":[{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":77,"tid":7,"ts":900,"dur":2,"args":{"Collective name":"`+p.plain("a collective")+
		`","Process Group Name":"`+p.plain("a process group")+`","Process Group Ranks":"`+p.plain("its ranks")+`","dtype":"`+p.plain("a type")+`"}},{"ph":"X","cat":"user_annotation","name":"load `+p.token("a range")+`","pid":77,"tid":7,"ts":901,"dur":2},`+
		`{"ph":"M","name":"thread_name","pid":77,"tid":8,"args":{"name":"`+p.token("a thread")+`"}},{"ph":"M","name":"process_labels","pid":77,"tid":0,"args":{"labels":"`+p.plain("a label")+`"}},{"ph":"M","name":"process_name","pid":77,"tid":0,"args":{"name":"/opt/python serve.py --password `+p.plain("an argument")+`"}},{"ph":"i","s":"t","name":"`+p.plain("an instant")+`","pid":77,"tid":7,"ts":905},`+
		`{"ph":"X","cat":"`+p.plain("a category")+`","name":"`+p.plain("an unknown event")+`","pid":77,"tid":7,"ts":905,"dur":1},{"ph":"X","cat":"python_function","name":"`+p.token("a function of Python")+`","pid":77,"tid":7,"ts":905,"dur":1},`, 1)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("in.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}); code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		p.check(t, strings.Join(args, " "), append(out.Bytes(), errs.Bytes()...))
		return out.String()
	}
	call("scrub", file("in.json"), file("copy.json"))
	call("scrub", "--names", "hash", file("in.json"), file("hidden.json"))
	call("scrub", "--names", "all", file("in.json"), file("unnamed.json"))
	call(file("in.json"), "--out", file("report"))
	call("partial", file("in.json"), "--out", file("in.partial"))
	number := func(path string) (list []string) {
		r, err := report.Read(strings.NewReader(call(path, "--format", "json")))
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Metrics {
			if m := &r.Metrics[i]; m.Value != nil {
				list = append(list, fmt.Sprint(report.MetricKey(m.ID, m.Labels), " ", *m.Value))
			}
		}
		return list
	}
	if a, b := number(file("in.json")), number(file("copy.json")); len(a) < 100 || !slices.Equal(a, b) {
		t.Errorf("%d metrics, %d of the copy", len(a), len(b))
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == file("in.json") {
			return err
		}
		content := read(t, path)
		if z, err := gzip.NewReader(bytes.NewReader(content)); err == nil {
			if content, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		p.check(t, path, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
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
