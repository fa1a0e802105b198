package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// plan prints what would be run.
func (r *recording) plan(programs [][]string) error {
	var b strings.Builder
	if r.unusable != "" {
		b.WriteString("# " + clean(r.unusable) + ": these are the commands for nsys " + r.nsysFound.Version + "\n")
	} else {
		b.WriteString("# nsys " + r.nsysFound.Version + "\n")
	}
	if r.server != nil && r.server.port == 0 {
		b.WriteString("# each port is replaced by a free one\n")
	}
	for side, program := range programs {
		job := r.job(program)
		var server *capture.Server
		port := 0
		if r.server != nil {
			server = r.server.server()
			if port = server.Port; port == 0 {
				port = 8000
			}
		}
		dir := filepath.Join(r.out, r.subfolder(side, 1))
		steps, err := capture.Plan(job, server, port, dir)
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
			b.WriteString(clean(line) + "\n")
		}
		if r.overhead {
			b.WriteString("# the same load once more, without nsys\n")
		}
		if r.server != nil {
			for _, line := range r.server.plan(dir) {
				b.WriteString(clean(line) + "\n")
			}
		}
		if !r.noReport {
			var evidence []string
			switch {
			case r.server != nil:
				evidence = r.server.evidence()
			case r.window.Triggered():
				b.WriteString("# with --server-log " +
					clean(capture.Shell([]string{filepath.Join(dir, "logs", "server.log")})) +
					" where that is the log of an inference server:\n")
			}
			b.WriteString(clean(capture.Shell(r.reportCommand(dir, evidence))) + "\n")
		}
	}
	if r.repeat > 1 {
		fmt.Fprintf(&b, "# all of it %d times\n", r.repeat)
	}
	if r.pair {
		b.WriteString(clean(capture.Shell(r.diffCommand())) + "\n")
	}
	_, err := fmt.Fprint(r.env.Out, b.String())
	return err
}

// diffCommand is what compares the captures of a pair.
func (r *recording) diffCommand() []string {
	sides := [2][]string{}
	for side := range sides {
		for i := 1; i <= r.repeat; i++ {
			sides[side] = append(sides[side], filepath.Join(r.out, r.subfolder(side, i)))
		}
	}
	argv := []string{"explain", "diff", "--base", strings.Join(sides[0], ","), "--head", strings.Join(sides[1], ","),
		"--out", filepath.Join(r.out, "comparison")}
	for _, rule := range r.rules.failOn {
		argv = append(argv, "--fail-on", rule)
	}
	for _, o := range [][2]string{{"--policy", r.rules.policy}, {"--noise", r.rules.noise}} {
		if o[1] != "" {
			argv = append(argv, o[0], o[1])
		}
	}
	return argv
}
