package diff_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

// TestWorlds judges captures as real ones are: nsys doubts itself in all of them, the GPU waits for the host most of the
// time, every other step takes twice as long, one step takes six times as long, or two kernels become one. In each, the
// same again passes or warns, a step that is 15 % longer fails, and the way back does not.
func TestWorlds(t *testing.T) {
	t.Parallel()
	all := mutant.On{}
	worlds := []struct {
		name string
		base func(s *subject) []mutant.Edit
		head func(s *subject) []mutant.Edit // what the program does otherwise; nil: nothing
	}{
		{"as it is", nil, nil},
		{"GPU 3 % busy", func(s *subject) []mutant.Edit { return []mutant.Edit{mutant.Stall(all, 3200*s.hundredth())} }, nil},
		{"every other step twice as long", func(s *subject) []mutant.Edit {
			return []mutant.Edit{mutant.Stall(mutant.On{Every: 2}, 100*s.hundredth())}
		}, nil},
		{"one slow step", func(s *subject) []mutant.Edit {
			return []mutant.Edit{mutant.Stall(mutant.On{Once: true}, 500*s.hundredth())}
		}, nil},
		{"fused", nil, func(s *subject) []mutant.Edit { return []mutant.Edit{mutant.Fuse(all, s.pair[0], s.pair[1], 1)} }},
	}
	for n, r := range mutant.Recipes() {
		if r.Name != "training" && r.Name != "loop" && !longtest.On() {
			continue
		}
		s := doubted(t, r)
		of := func(edits func(*subject) []mutant.Edit) []mutant.Edit {
			if edits == nil {
				return nil
			}
			return edits(s)
		}
		for i, w := range worlds {
			switch {
			case !longtest.On() && (i+n)%2 == 0: // the one world with inference, the next with training
				continue
			case w.name == "fused" && r.Name == "training":
				continue // one side's step is then found by its ranges, and the other's is not
			}
			what := r.Name + ", " + w.name
			make := func(seed uint64, more ...mutant.Edit) *report.Report {
				return mutantReport(t, s.capture, append(append(of(w.base), more...), mutant.Noise(0.002, seed)))
			}
			base := make(1)
			step := report.NewIndex(base).Metric("unit.time", nil).Summary.Mean
			same := make(2, of(w.head)...)
			slow := make(3, append(of(w.head), mutant.Stall(all, 0.15*step))...)
			if c := tried(t, what, base, same); c != nil && exitOf(c) != 0 {
				t.Errorf("%s, again: %s, %s: %s", what, c.Verdict, c.Cause, failing(c))
			}
			if c := tried(t, what, base, slow); c != nil && c.Verdict != comparison.Fail {
				t.Errorf("%s, 15 %% longer: %s, %s %v", what, c.Verdict, c.Cause, c.Reasons)
			}
			if c := tried(t, what, slow, base); c != nil && c.Verdict == comparison.Fail {
				t.Errorf("%s, 15 %% shorter: %s", what, failing(c))
			}
		}
	}
}

// doubted is a synthetic capture with the messages that nsys leaves in most.
func doubted(t *testing.T, r mutant.Recipe) *subject {
	t.Helper()
	build := r.Build
	r.Build = func(seed uint64) *tracetest.Builder {
		b := build(seed)
		for _, text := range []string{
			"Not all CUDA events might have been collected.", "Not all NVTX events might have been collected.",
			"CUDA profiling might have not been started correctly.", "No OpenGL events collected. Does the process use OpenGL?",
		} {
			b.Diagnostic(tracetest.Diagnostic{Source: 3, Severity: 2, Text: text})
		}
		return b
	}
	c, err := r.Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{name: r.Name, capture: c, base: []*report.Report{mutantReport(t, c, nil)}, pair: c.Pair()}
	if n := report.NewIndex(s.base[0]).Metric("quality.lost_data_messages", nil); n == nil || *n.Value != 3 {
		t.Fatalf("messages: %+v", n)
	}
	return s
}
