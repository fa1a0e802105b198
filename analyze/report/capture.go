package report

// Capture tells a capture from its copy, two windows of one session from two captures, and captures of one run from those
// of another. All of it are hashes: no name of a host, path or user, and no time of day. Null is unknown: no trace, or an
// export that does not say it.
type Capture struct {
	// Content is of the events in the window, in a canonical form: two exports of one capture have the same, whatever
	// version of nsys wrote them. Counted are the kernels (name, launch configuration, device), copies, memsets, graph
	// launches, calls and ranges, with the time of each since the start of the window and its duration.
	Content *string `json:"content"`
	// SessionStart is of the moment, in ns, at which nsys began the session: all captures and windows of it share it.
	SessionStart *string `json:"session_start"`
	// Host is of the UUIDs of all GPUs of the machine.
	Host *string `json:"host"`
	// Processes is of the ids of all processes with events in the session.
	Processes *string `json:"processes"`
	// Run is of the host and the hour of the session: what differs between runs (node, clocks, driver, neighbours) is the
	// same within one.
	Run *string `json:"run"`
}
