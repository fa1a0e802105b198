package record

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// RUN_ID names the folder of a run if it is one folder; without it the time does.
func TestRunID(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for set, want := range map[string]string{"": "run_20260102_030405", "night-7": "night-7", "../up": "", "a/b": "", ".hidden": ""} {
		got, err := runID(&cmdenv.Env{Getenv: func(string) string { return set }}, now)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("RUN_ID=%q: %q, %v; want %q", set, got, err, want)
		}
	}
}

// A mode of capture vllm sets what it is about, and leaves what was given.
func TestModes(t *testing.T) {
	for _, x := range []struct {
		args, trace, graphs string
		memory, measures    bool
	}{
		{"", "cuda,nvtx,osrt", "node", false, false},
		{"--mode light", "cuda,nvtx", "graph", false, false},
		{"--mode light --trace cuda --graph-trace node", "cuda", "node", false, false},
		{"--mode deep", "cuda,nvtx,osrt", "node", true, true},
		{"--mode full", "cuda,nvtx,osrt", "node", false, true},
		{"--with-ncu", "cuda,nvtx,osrt", "node", false, true},
	} {
		var s serverFlags
		cmd := &cobra.Command{}
		s.register(cmd, "")
		if err := cmd.ParseFlags(append([]string{"--model", "m"}, strings.Fields(x.args)...)); err != nil {
			t.Fatal(err)
		}
		s.applyMode(cmd)
		if err := s.check(); err != nil {
			t.Errorf("%s: %v", x.args, err)
		}
		if got := s.Trace; got.Kinds != x.trace || got.Graphs != x.graphs || got.Memory != x.memory || s.server.Measure != x.measures {
			t.Errorf("%s: %s %s %t %t", x.args, got.Kinds, got.Graphs, got.Memory, s.server.Measure)
		}
	}
	for _, wrong := range []serverFlags{{}, func() (s serverFlags) { s.server.Model, s.server.Mode = "m", "slow"; return s }(),
		func() (s serverFlags) {
			s.server.Model, s.server.Mode, s.server.Engine = "m", modeQuick, "tgi"
			return s
		}()} {
		if err := wrong.check(); err == nil {
			t.Errorf("%s %s is accepted", wrong.server.Mode, wrong.server.Engine)
		}
	}
}
