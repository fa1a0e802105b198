package ci

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// TestActionReadsEveryInput: every input of action.yml reaches a command as one word, an empty one as none, and each flag that
// the inputs become exists.
func TestActionReadsEveryInput(t *testing.T) {
	var file struct {
		Inputs map[string]struct{ Default string } `yaml:"inputs"`
	}
	b, err := os.ReadFile("../../../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &file); err != nil || len(file.Inputs) < 30 {
		t.Fatalf("%d inputs, %v", len(file.Inputs), err)
	}
	in := actionInputs{"command": "gate", "allow-unsafe": "true"}
	elsewhere := []string{"command", "github-token", "working-directory", "binary", "version", "release-url", "expect", "allow-unsafe"}
	for name := range file.Inputs {
		if !slices.Contains(elsewhere, name) {
			in[name] = "'$(" + name + ")' \"*"
		}
	}
	in["baseline"] = "a b.json\r\n\n  \n$(touch pwned)*.json"
	args := strings.Join(in.args(), "\x00") + "\x00"
	for name, value := range in {
		if !slices.Contains(elsewhere, name) && name != "baseline" && !strings.Contains(args, "="+value+"\x00") {
			t.Errorf("the input %s is in no flag", name)
		}
	}
	if !strings.Contains(args, "\x00--base=a b.json\x00--base=$(touch pwned)*.json\x00") || !strings.Contains(args, "\x00--allow-unsafe\x00") {
		t.Errorf("%q", args)
	}
	for _, command := range []string{"gate", "comment"} {
		in["command"], in["expect"] = command, "a,b"
		words, flags := []string{}, in.args()[1:]
		if command == "comment" {
			words, flags = []string{"comment"}, flags[1:]
		}
		cmd, _, err := newGate(&cmdenv.Env{Getenv: os.Getenv}).Find(words)
		if err != nil || cmd.Name() != command {
			t.Fatal(cmd.Name(), err)
		}
		for _, arg := range flags {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no flag %s", command, name)
			}
		}
	}
	if got := (actionInputs{"command": "gate", "exit-on": "warn", "fail-on": "error"}).args(); !slices.Equal(got, []string{"gate", "--exit-on=warn", "--exit-on=error", "--override-label="}) {
		t.Errorf("%q", got)
	}
}
