package capture

import "strings"

// Plan returns the commands that Profile would run, with a server on this port, and what happens between them, as lines
// of a shell.
func Plan(j *Job, port int, dir string) (lines []string, err error) {
	out := base(dir)
	add := func(argv ...string) { lines = append(lines, Shell(argv)) }
	say := func(note string) { lines = append(lines, "# "+note) }
	var notes []string
	if p := j.target(port); j.Server == nil && !j.Window.Triggered() {
		var argv []string
		if argv, notes, err = profileCommand(j.Nsys, &j.Trace, &j.Window, out, j.Program); err != nil {
			return nil, err
		}
		add(argv...)
	} else {
		if len(p.env) > 0 {
			say("with " + strings.Join(p.env, " ") + " in the environment:")
		}
		var argv, start []string
		if argv, start, notes, err = sessionCommands(j.Nsys, &j.Trace, "explain", out, p.argv); err != nil {
			return nil, err
		}
		lines = append(lines, Shell(argv)+" # in the background")
		say("wait until " + RedactText(p.ready) + " is ready")
		w, client := &j.Window, len(j.Window.Client) > 0
		own := j.Server != nil && !client // explain sends the load
		switch {
		case own:
			say("send the warm-up requests")
		case w.Warmup > 0 && client:
			lines = append(lines, Shell(w.Client)+" # in the background")
			fallthrough
		case w.Warmup > 0:
			say("wait " + w.Warmup.String())
		}
		add(start...)
		switch {
		case own:
			say("send the measured requests")
		case client && w.Warmup == 0:
			add(w.Client...)
		case client:
			say("wait until the client ends")
		default:
			say("wait " + w.Duration.String())
		}
		if client && w.Duration > 0 {
			say("end the client after " + w.Duration.String() + " of recording")
		}
		add(stopCommand(j.Nsys, "explain")...)
		add(shutdownCommand(j.Nsys, "explain")...)
	}
	add(exportCommand(j.Nsys, out+".nsys-rep", out+".sqlite")...)
	for _, n := range notes {
		say(n)
	}
	return lines, nil
}
