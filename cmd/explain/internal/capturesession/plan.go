package capturesession

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// plan prints what would be run.
func (r *Session) plan(programs [][]string) error {
	var b strings.Builder
	if r.Unusable != "" {
		b.WriteString("# " + render.Visible(r.Unusable) + ": these are the commands for nsys " + r.Nsys.Version + "\n")
	} else {
		b.WriteString("# nsys " + r.Nsys.Version + "\n")
	}
	if r.Of != nil && r.Of.Port == 0 {
		b.WriteString("# each port is replaced by a free one\n")
	}
	for side, program := range programs {
		port := 8000
		if r.Of != nil {
			port = cmp.Or(r.Of.Port, port)
		}
		dir := filepath.Join(r.Out, r.subfolder(side, 1))
		steps, err := capture.Plan(r.job(program), port, dir)
		if err != nil {
			return err
		}
		for _, s := range steps {
			line := ""
			if len(s.Argv) > 0 {
				line = capture.Shell(s.Argv)
			}
			if s.Note != "" {
				line = strings.TrimSpace(line + " # " + s.Note)
			}
			b.WriteString(render.Visible(line) + "\n")
		}
		if r.Overhead {
			b.WriteString("# the same load once more, without nsys\n")
		}
		if r.Of != nil {
			for _, line := range r.Of.plan(dir) {
				b.WriteString(render.Visible(line) + "\n")
			}
		}
		if !r.NoReport {
			var evidence []string
			switch {
			case r.Of != nil:
				evidence = r.Of.evidence(len(r.Window.Client) > 0)
			case r.Window.Triggered():
				b.WriteString("# with --server-log " +
					render.Visible(capture.Shell([]string{filepath.Join(dir, "logs", "server.log")})) +
					" where that is the log of an inference server:\n")
			}
			b.WriteString(render.Visible(capture.Shell(r.reportCommand(dir, evidence))) + "\n")
		}
	}
	if r.Repeat > 1 {
		fmt.Fprintf(&b, "# all of it %d times\n", r.Repeat)
	}
	if r.Pair {
		b.WriteString(render.Visible(capture.Shell(r.diffCommand())) + "\n")
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
	for _, o := range [][2]string{{"--policy", r.Policy}, {"--noise", r.Noise}} {
		if o[1] != "" {
			argv = append(argv, o[0], o[1])
		}
	}
	return argv
}
