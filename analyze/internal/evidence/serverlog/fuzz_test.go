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
