package capturesession

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// plan prints what would be run.
func (r *Session) plan(programs [][]string) error {
	var b strings.Builder
	add := func(lines ...string) {
		for _, line := range lines {
			b.WriteString(render.Visible(line) + "\n")
		}
	}
	if r.Unusable != "" {
		add("# " + r.Unusable + ": these are the commands for nsys " + r.Want.Nsys.Version)
	} else {
		add("# nsys " + r.Want.Nsys.Version)
	}
	port := 8000
	if r.Of != nil && r.Of.Port != 0 {
		port = r.Of.Port
	} else if r.Of != nil {
		add("# each port is replaced by a free one")
	}
	for side, program := range programs {
		dir := filepath.Join(r.Want.Out, r.Want.subfolder(side, 1))
		steps, err := capture.Plan(r.Want.job(program), port, dir)
		if err != nil {
			return err
		}
		add(steps...)
		if r.Want.Overhead {
			add("# the same load once more, without nsys")
		}
		var evidence []string
		if r.Of != nil {
			add(r.Of.plan(dir)...)
			evidence = r.Of.evidence(len(r.Want.Window.Client) > 0)
		}
		if r.Want.NoReport {
			continue
		}
		if r.Of == nil && r.Want.Window.Triggered() {
			add("# with --server-log " + capture.Shell([]string{filepath.Join(dir, "logs", "server.log")}) +
				" where that is the log of an inference server:")
		}
		add(capture.Shell(r.Want.reportCommand(dir, evidence)))
	}
	if r.Want.Repeat > 1 {
		add(fmt.Sprintf("# all of it %d times", r.Want.Repeat))
	}
	if r.Want.Pair {
		add(capture.Shell(r.Want.diffCommand()))
	}
	_, err := fmt.Fprint(r.Stdout, b.String())
	return err
}

// diffCommand is what compares the captures of a pair.
func (r *Options) diffCommand() []string {
	sides := r.sides()
	argv := []string{"explain", "diff", "--base", strings.Join(sides[0], ","), "--head", strings.Join(sides[1], ","),
		"--out", filepath.Join(r.Out, "comparison")}
	for _, rule := range r.FailOn {
		argv = append(argv, "--fail-on", rule)
	}
	return append(argv, given("--policy", r.Policy, "--noise", r.Noise)...)
}
