package evidence_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/compat"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/modelconfig"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/schema"
)

// A kind of evidence is declared once, with its reader; the published schema and the page follow.
func TestEveryKindIsInSchemaAndPage(t *testing.T) {
	type kinds struct {
		Properties struct {
			Kind struct{ Enum []string }
		}
	}
	var root struct {
		Properties struct {
			Trace    kinds
			Evidence struct{ Items kinds }
		}
	}
	text, _ := schema.Text("report")
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	trace, files := root.Properties.Trace.Properties.Kind.Enum, root.Properties.Evidence.Items.Properties.Kind.Enum
	var want []string
	for _, r := range evidence.Readers(compat.Readers) {
		want = append(want, string(r.Kind))
		if !strings.Contains(evidence.Page(), "`"+string(r.Kind)+"`") {
			t.Errorf("evidence.md does not name %s, %s", r.Kind, r.Title)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(files)); !slices.Equal(got, want) {
		t.Errorf("kinds of evidence %v in the schema, %v have a reader", got, want)
	}
	of := append([]string{"nsys-sqlite", "nsys-rep", "pytorch-profiler"}, want...)
	if got := slices.Sorted(slices.Values(trace)); !slices.Equal(got, slices.Sorted(slices.Values(of))) {
		t.Errorf("kinds of a report's first file %v in the schema, want %v", got, of)
	}
}

// A config.json that leaves out the model's dimensions, as that of a model that also sees may, is skipped in a folder,
// and the rest is read; by itself it is refused.
func TestUnreadableFileInAFolder(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	for path, text := range map[string]string{filepath.Join(dir, "server.log"): "INFO 12-15 18:32:12 [core.py:1] Engine 000: Avg prompt " +
		"throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 1 reqs, Waiting: 2 reqs\n",
		config: `{"model_type":"gemma3","text_config":{"hidden_size":2560,"num_hidden_layers":34}}`,
		filepath.Join(dir, "text", "config.json"): `{"model_type":"opt","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,` +
			`"intermediate_size":8,"vocab_size":10}`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := evidence.Read(context.Background(), []evidence.Named{{Path: dir}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := evidence.Of[*modelconfig.Data](s)
	if len(s.Log.Samples) != 1 || len(s.Skipped) != 1 || !strings.HasPrefix(s.Skipped[0], "config.json (cannot be read") || len(s.Files) != 2 ||
		m == nil || m.Model.Hidden != 4 {
		t.Errorf("%d samples, skipped %q, %d files, model %+v", len(s.Log.Samples), s.Skipped, len(s.Files), m)
	}
	// A folder with nothing else does not end the report of a trace, unless the user asks for the kind.
	lone := t.TempDir()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lone, "config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := evidence.Read(context.Background(), []evidence.Named{{Path: lone, Beside: true}}, nil); err != nil || len(s.Files) != 0 || len(s.Skipped) != 1 {
		t.Errorf("beside a trace: %+v, %v", s, err)
	}
	for name, list := range map[string][]evidence.Named{"named": {{Path: config}, {Path: dir}}, "alone": {{Path: config}}, "alone in a folder": {{Path: lone}},
		"asked for": {{Path: lone, Beside: true, Kind: "model-config"}}, "named beside a trace": {{Path: config, Beside: true}}} {
		if _, err := evidence.Read(context.Background(), list, nil); err == nil || !strings.Contains(err.Error(), "dimensions") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A core dump beside a log is larger than any evidence: in a folder it is skipped and named, by itself it is refused.
func TestFileTooLargeInAFolder(t *testing.T) {
	dir := t.TempDir()
	const line = "INFO 12-15 18:32:12 [core.py:348] Iteration(7): 1 context requests, 1 context tokens, 0 generation requests, " +
		"0 generation tokens, iteration elapsed time: 36.68 ms\n"
	large := filepath.Join(dir, "core")
	for path, text := range map[string]string{filepath.Join(dir, "server.log"): line, large: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(large, limit.Evidence.Bytes+1); err != nil {
		t.Skipf("no sparse file: %v", err)
	}
	s, err := evidence.Read(context.Background(), []evidence.Named{{Path: dir}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"core (larger than 17.18 GB, the most that explain reads)"}; s.Log.Iterations.Len() != 1 || !slices.Equal(s.Skipped, want) {
		t.Errorf("%d iterations, skipped %q", s.Log.Iterations.Len(), s.Skipped)
	}
	if _, err := evidence.Read(context.Background(), []evidence.Named{{Path: large}}, nil); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error %v", err)
	}
}
