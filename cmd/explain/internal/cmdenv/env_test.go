package cmdenv

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{"2%": 0.02, " 0.5 % ": 0.005, "0.25": 0.25, "0": 1e-12, "0%": 1e-12} {
		if got, err := Share(text); err != nil || got != want {
			t.Errorf("Share(%q) = %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "100%", "1", "-1%", "NaN", "Inf", "two"} {
		if got, err := Share(text); err == nil {
			t.Errorf("Share(%q) = %g, want an error", text, got)
		}
	}
}

// The share of failed requests that a load survives may be all of them.
func TestShareUpTo(t *testing.T) {
	for text, want := range map[string]float64{"1%": 0.01, "0.25": 0.25, "100 %": 1, "0": 0} {
		if got, err := ShareUpTo(1, text); err != nil || got != want {
			t.Errorf("%s: %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2", "-1%", "NaN", "few"} {
		if got, err := ShareUpTo(1, text); err == nil {
			t.Errorf("%q is %g", text, got)
		}
	}
}

// TestChoice: a flag takes its words alone, and keeps its default else.
func TestChoice(t *testing.T) {
	cmd, format := &cobra.Command{}, "text"
	Choice(cmd, &format, "format", "print this `FORMAT`", []string{"text", "json"})
	f := cmd.Flags().Lookup("format")
	if f.DefValue != "text" || f.Usage != "print this `FORMAT`: text, json" {
		t.Errorf("%+v", f)
	}
	if err := f.Value.Set("yaml"); !errors.As(err, new(usage.Error)) || format != "text" || err.Error() != "is unknown; it is one of text, json" {
		t.Errorf("%v, %s", err, format)
	}
	if err := f.Value.Set("json"); err != nil || format != "json" {
		t.Errorf("%v, %s", err, format)
	}
}

// TestRefusals: what is refused is an error of usage, which ends in exit code 2.
func TestRefusals(t *testing.T) {
	cmd := &cobra.Command{Use: "list"}
	for name, err := range map[string]error{
		"list takes no arguments, got \"x\"": NoArgs(cmd, []string{"x"}),
		"name one trace":                     Args(1, 1, "name one trace")(cmd, nil),
		"name a pair":                        Args(2, Any, "name a pair")(cmd, []string{"x"}),
		"one at a time":                      Args(0, 1, "one at a time")(cmd, []string{"x", "y"}),
		"--format yaml is unknown; it is one of text, json": Format("yaml", []string{"text", "json"}),
	} {
		if !errors.As(err, new(usage.Error)) || err.Error() != name {
			t.Errorf("%v, want %q", err, name)
		}
	}
	if err := errors.Join(NoArgs(cmd, nil), Args(2, Any, "")(cmd, []string{"x", "y", "z"}), Args(0, 1, "")(cmd, nil), Format("json", []string{"text", "json"})); err != nil {
		t.Error(err)
	}
}
