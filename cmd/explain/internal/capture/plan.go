package capture

import "strings"

// Step is one line of a plan: a command, or a description of what happens between commands.
type Step struct {
	Note string
	Argv []string
}

// Plan returns the steps that Profile would run, with a server on this port.
func Plan(j *Job, port int, dir string) ([]Step, error) {
	out := base(dir)
	var steps []Step
	var notes []string
	add := func(argv ...string) { steps = append(steps, Step{Argv: argv}) }
	say := func(note string) { steps = append(steps, Step{Note: note}) }
	s, p := j.Server, j.target(port)
	if s == nil && !j.Window.Triggered() {
		argv, more, err := profileCommand(j.Nsys, &j.Trace, &j.Window, out, j.Program)
		if err != nil {
			return nil, err
		}
		notes = more
		add(argv...)
	} else {
		if len(p.env) > 0 {
			say("with " + strings.Join(p.env, " ") + " in the environment:")
		}
		argv, start, more, err := sessionCommands(j.Nsys, &j.Trace, "explain", out, p.argv)
		if err != nil {
			return nil, err
		}
		notes = more
		steps = append(steps, Step{Argv: argv, Note: "in the background"})
		say("wait until " + RedactText(p.ready) + " is ready")
		if s != nil && len(j.Window.Client) == 0 {
			say("send the warm-up requests")
		} else if j.Window.Warmup > 0 {
			say("wait " + j.Window.Warmup.String())
		}
		add(start...)
		switch {
		case s != nil && len(j.Window.Client) == 0:
			say("send the measured requests")
		case len(j.Window.Client) > 0:
			add(j.Window.Client...)
		default:
			say("wait " + j.Window.Duration.String())
		}
		add(stopCommand(j.Nsys, "explain")...)
		add(shutdownCommand(j.Nsys, "explain")...)
	}
	add(exportCommand(j.Nsys, out+".nsys-rep", out+".sqlite")...)
	for _, n := range notes {
		say(n)
	}
	return steps, nil
}
