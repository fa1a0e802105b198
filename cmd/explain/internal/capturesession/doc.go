// Package capturesession is one call of explain capture: every capture that it makes, the load beside it, the report on
// each trace, and the comparison of a pair, in one folder.
//
//	session   the captures in turns, each in its place as soon as it is whole; what is said at the end
//	server    a capture of an inference server: its load, expert tracking, Nsight Compute
//	report    the analysis of a trace with the evidence beside it, the same load without the profiler; what
//	          --dry-run prints
//	resume    the rest of a capture that failed after the recording
//
// Package capture, beneath it, runs the programs. What a command line says is in Options; the session parses no flags
// and knows no exit codes.
package capturesession
