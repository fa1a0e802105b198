package docs

import (
	"fmt"
	"strings"
)

// task is what somebody wants to do, and the command that does it.
type task struct{ want, command string }

// tasks are the doors to explain, in the order in which people come to them.
var tasks = []task{
	{"see a regression, its cause and its page", "explain demo"},
	{"know where the time of a step goes", "explain trace.sqlite --out report/"},
	{"know whether a change made the step slower, and why", "explain diff base.sqlite head.sqlite"},
	{"compare sides that differ on purpose: GPUs, batch, engine", "explain diff a.sqlite b.sqlite --study gpu"},
	{"know what a remedy could gain at most", "explain whatif trace.sqlite"},
	{"judge every pull request", "explain gate --base base.sqlite --head head.sqlite"},
	{"say what fails, and what is tolerated", "explain policy init a1.sqlite a2.sqlite a3.sqlite"},
	{"find the commit that made it slower", "explain bisect --help"},
	{"follow the step over months", "explain history --help"},
	{"know which rank the others wait for", "explain ranks/*.sqlite --out report/"},
	{"record a capture", "explain capture --dry-run --out run/ -- python serve.py"},
	{"measure what clients see", "explain load --help"},
	{"share a capture without its secrets", "explain scrub trace.sqlite clean.sqlite"},
	{"let an agent ask", "explain mcp --help"},
	{"look up a name from an output", "explain doc gpu_idle"},
}

// TaskList is the tasks as lines of a shell, each with what it is for behind it.
func TaskList() string {
	width := 0
	for _, t := range tasks {
		width = max(width, len(t.command))
	}
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%-*s  # %s\n", width, t.command, t.want)
	}
	return b.String()
}
