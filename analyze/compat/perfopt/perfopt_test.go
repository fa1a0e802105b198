package perfopt

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// read writes one file and reads it.
func read(tb testing.TB, name string, content []byte) (*Data, file.Tally) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		tb.Fatal(err)
	}
	in, err := file.New(path, name)
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Read(context.Background(), []file.Input{in})
	if err != nil {
		tb.Fatal(err)
	}
	return d, *in.Tally
}

// Every artifact is told by its content, whatever it is called, and read whole.
func TestIs(t *testing.T) {
	err := filepath.WalkDir("../../../testdata/evidence/perfopt", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if !Is("x", b) {
			t.Errorf("%s is not recognised", e.Name())
		}
		if _, tally := read(t, "x", b); tally.Understood == 0 || tally.Unknown > 0 || tally.Records != tally.Understood+tally.Known {
			t.Errorf("%s: %+v", e.Name(), tally)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "{}", "# Title\n", `{"schema": "explain.report/1", "metrics": []}`, "version: 1\nrules:\n  - {id: a}\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "model: x\n", `{"gpu": "a"}`} {
		if Is("metrics.json", []byte(other)) {
			t.Errorf("%q is taken for an artifact", other)
		}
	}
}

// The configuration of a real run, with its paths: the model by its name, and no path at all.
func TestConfig(t *testing.T) {
	const more = "infer:\n  max_new_tokens: 64\n"
	for text, want := range map[string]string{
		"model:\n  name: deepseek_ocr\n  path: /home/jane/models/x\n":                                              "deepseek_ocr",
		"model:\n  path: ${hydra:runtime.cwd}/models/deepseek-ocr\n":                                               "deepseek-ocr",
		"model:\n  path: /home/jane/.cache/huggingface/hub/models--deepseek-ai--DeepSeek-OCR/snapshots/2c968b43\n": "deepseek-ai/DeepSeek-OCR",
		"model:\n  name: /home/jane/secret model\n":                                                                "",
		"model:\n  name: [a, b]\n":                                                                                 "",
		"model: plain\n":                                                                                           "",
		"model:\n  name: 'x y'\n  path: /home/jane/ok-1/":                                                          "ok-1",
	} {
		if d, _ := read(t, "c", []byte(text+"\n"+more)); d.Model != want {
			t.Errorf("%q: model %q, want %q", text, d.Model, want)
		}
	}
	d, _ := read(t, "c", []byte("model:\n  name: m\n  dtype: BF16\ninfer:\n  context_len_mode: fixed\n  context_len_fixed: 1024\n"))
	if d.DType != "bfloat16" || d.Context != 1024 {
		t.Errorf("%q %d", d.DType, d.Context)
	}
	if d, _ := read(t, "c", []byte("model:\n  name: m\n  dtype: secret-token\ninfer:\n  a: 1\n")); d.DType != "" {
		t.Errorf("data type %q", d.DType)
	}
}

// A configuration that would choke a parser is left out and said so.
func TestConfigHostile(t *testing.T) {
	for name, text := range map[string]string{
		"deep":    "model:\n  name: m\ninfer: " + strings.Repeat("[", 5000),
		"anchors": "model: &a\n  name: m\ninfer: *a\n",
		"lists":   "model:\n  name: m\ninfer:\n  " + strings.Repeat("- ", 5000) + "x\n",
		"long":    "model:\n  name: m\ninfer:\n" + strings.Repeat("  a: b\n", 50_000),
		"indent":  "model:\n  name: m\ninfer:\n" + strings.Repeat(" ", 9000) + "a: b\n",
	} {
		d, tally := read(t, "c", []byte(text))
		if d.Model != "" || tally.Unknown != 1 || len(d.Warnings()) != 1 {
			t.Errorf("%s: model %q, %+v, %v", name, d.Model, tally, d.Warnings())
		}
	}
}

func TestEnv(t *testing.T) {
	d, _ := read(t, "e", []byte(`{"gpu": "NVIDIA GeForce RTX 5090", "cuda": "12.8", "torch": "2.10.0.dev20251102+cu128", "transformers": "4.46.3", "token": "hf_abc"}`))
	if d.GPU != "NVIDIA GeForce RTX 5090" || d.CUDA != "12.8" || d.Packages != "torch 2.10.0.dev20251102+cu128, transformers 4.46.3" {
		t.Errorf("%q %q %v", d.GPU, d.CUDA, d.Packages)
	}
	d, tally := read(t, "e", []byte(`{"gpu": "jane's machine", "cuda": "12.8 hunter2", "torch": null}`))
	if d.GPU != "" || d.Packages != "" || tally.Known != 1 {
		t.Errorf("%q %v %+v", d.GPU, d.Packages, tally)
	}
}

// inputs.yaml holds paths and command lines: a number is taken, nothing else.
func TestInputs(t *testing.T) {
	d, tally := read(t, "i", []byte("count: 3\ninputs:\n- path: /home/jane/.pixi/python -m x --token=hf_abc\n    model.path=/home/jane\n"))
	if d.Inputs != 3 || tally.Understood != 1 || tally.Known != 3 {
		t.Errorf("%d, %+v", d.Inputs, tally)
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"aten::mm": true, "cudaLaunchKernel": true, "Memcpy HtoD (Pageable -> Device)": true, "Memset (Unknown)": false, "flash_attn::_flash_attn_forward": true, "ProfilerStep#7": true,
		"hf_abc": false, "/home/jane": false, "a b": false, "SECRET-x::y-hunter2": false} {
		if operatorRef().MatchString(name) != ok {
			t.Errorf("operator %q: %v", name, !ok)
		}
	}
	for name, want := range map[string]string{"LLM@prefill": "LLM@prefill", "A::B::C": "A::B::C", "layer12": "layer12", "sk-abc": "region 4", "a b": "region 4", "": "region 4", "A::": "region 4"} {
		if got, _, _ := regionName(name, 4); got != want {
			t.Errorf("region %q: %q, want %q", name, got, want)
		}
	}
	if _, parent, depth := regionName("A::B::C", 1); parent != "A::B" || depth != 2 {
		t.Errorf("inside %q at depth %d", parent, depth)
	}
}

// The first of several runs is shown, and a warning says so.
func TestSeveralRuns(t *testing.T) {
	dir := t.TempDir()
	var files []file.Input
	for _, name := range []string{"1", "2"} {
		path := filepath.Join(dir, name)
		text := `{"aggregates": {"prefill_ms": {"mean": ` + name + `}}, "peak_tflops": 1}`
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in)
	}
	d, err := Read(context.Background(), files)
	if err != nil || *d.Run.Times["prefill"].Mean != 1e6 || len(d.Warnings()) != 1 {
		t.Errorf("%+v %v (%v)", d.Run, d.Warnings(), err)
	}
}

// FuzzRead feeds anything to the reader: no panic, no lost record, no number that is none, no text that is on no list.
func FuzzRead(f *testing.F) {
	_ = filepath.WalkDir("../../../testdata/evidence/perfopt", func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if b, err := os.ReadFile(path); err == nil {
				f.Add(b)
			}
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, content []byte) {
		if !Is("x", content) {
			return
		}
		d, tally := read(t, "x", content)
		if tally.Records != tally.Understood+tally.Known+tally.Unknown {
			t.Errorf("%+v", tally)
		}
		if d.Run != nil {
			for stage, v := range d.Run.Times {
				if math.IsNaN(*v.Mean) || math.IsInf(*v.Mean, 0) || *v.Mean < 0 {
					t.Errorf("%s takes %v", stage, *v.Mean)
				}
			}
		}
		if d.Model != "" && !modelID().MatchString(d.Model) || d.GPU != "" && !gpuName().MatchString(d.GPU) {
			t.Errorf("model %q, GPU %q", d.Model, d.GPU)
		}
		for _, o := range d.Operators {
			if o.Name != otherOperators && !operatorRef().MatchString(o.Name) {
				t.Errorf("operator %q", o.Name)
			}
		}
		d.Warnings()
	})
}
