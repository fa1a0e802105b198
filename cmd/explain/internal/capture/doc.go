// Package capture runs a program under Nsight Systems and leaves one folder: the trace, its export, and what is needed
// to know later how it was made. It starts other programs and ends every one of them, whatever happens.
//
// The parts, each in a file of its own:
//
//	child, tree   a child process: its log, exit code and signal; how all that it started is ended
//	nsys          the installed Nsight Systems: its version and the flags it has. Debian's leaves a raw stream, which
//	              QdstrmImporter turns into a report
//	command       the command lines of nsys; which part of a run is recorded: all of it, a delay and a duration, an NVTX
//	              range, or from a trigger on
//	run           one capture from the first command to the export
//	phase         one run of a program or an inference server, with its load: recorded, tracked, unprofiled, or under
//	              Nsight Compute; the server's command, port, metrics
//	ncu           Nsight Compute on the kernels that matter
//	folder        the output folder, whole or not at all
//	redact        what must not stand in the files about a capture
//	facts         metadata.txt, env.json, inputs.yaml, config.yaml, cmd.txt
//
// It knows nothing of reports: what analyses a trace and what sends load are functions that its caller gives.
package capture
