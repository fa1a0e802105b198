package serverlog

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// FuzzRead: whatever a log holds, no line is lost, nothing panics, and what comes out is within its ranges.
func FuzzRead(f *testing.F) {
	example, err := os.ReadFile("../../../../testdata/evidence/vllm.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(example) {
		f.Add(bytes.Clone(line))
	}
	f.Add(example[:4096])
	for _, line := range []string{
		"[TRT-LLM] [I] iter = 7, global_rank = 0, num_scheduled_requests = 16, kv_cache_util = 1.125, host_step_time = 12.5ms, prev_device_step_time = 1ms, timestamp = 2026-08-17 03:22:44, states = {'num_ctx_requests': 99}",
		`[TensorRT-LLM][INFO] {"Active Request Count":-1e300,"Iteration Counter":9,"Max KV cache blocks":1e-300,"Used KV cache blocks":-5}`,
		"INFO 12-15 18:32:12 [m.py:1] KV Transfer metrics: Num successful transfers=9223372036854775807, Avg xfer time (ms)=2.0, Avg MB per transfer=8.0",
		"DEBUG 12-15 18:32:12 [s.py:1] scheduled_new_reqs=1, num_batched_tokens=9, max_num_batched_tokens=1",
	} {
		f.Add([]byte(line + "\n" + line))
	}
	path := filepath.Join(f.TempDir(), "fuzz.log")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, "fuzz.log")
		if err != nil {
			t.Fatal(err)
		}
		Is("fuzz.log", text)
		d, err := Read(context.Background(), []file.Input{in})
		if err != nil {
			return // a compressed file that is none
		}
		if tally := in.Tally; tally.Records != tally.Understood+tally.Known+tally.Unknown {
			t.Fatalf("lines were lost: %+v", *tally)
		}
		if d.Transfers.Count < 0 {
			t.Fatalf("negative: %+v", d.Transfers)
		}
		for i := range d.Samples {
			s := &d.Samples[i]
			if s.Prompt < 0 || s.Generation < 0 || s.Running < 0 || s.Usage < 0 {
				t.Fatalf("negative: %+v", *s)
			}
		}
		for i := range d.Requests.List {
			if id := d.Requests.List[i].PublicID(); len(id) > maxID {
				t.Fatalf("id of %d bytes", len(id))
			}
		}
		for _, s := range d.Starts {
			if m := s.Model; m != ModelID(m) && m != "" {
				t.Fatalf("model %q", m)
			}
			if len(s.Version) > 48 || len(s.Architecture) > 80 {
				t.Fatalf("%q %q", s.Version, s.Architecture)
			}
		}
		d.Units()
		d.Warnings()
	})
}
