package capturetest

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// NCU is the fake ncu. The variable NCU_STANDIN is "fault=F". Faults: no_kernels (never any), no_nvtx (none with
// --nvtx), fail, kill.
func NCU(args []string, getenv func(string) string, out, errs io.Writer) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(out,
			"NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2024.1.1.0 (build 33998838) (public-release)")
		return 0
	}
	_, fault, _ := strings.Cut(getenv("NCU_STANDIN"), "fault=")
	flags := map[string]string{}
	rest := args
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		name := strings.TrimPrefix(rest[0], "--")
		value, known := ncuFlags[name]
		switch {
		case !known:
			fmt.Fprintf(out, "==ERROR== unrecognised option '%s'. Use --help for further details.\n", rest[0])
			return 1
		case value && len(rest) < 2:
			fmt.Fprintf(out, "==ERROR== the required argument for option '%s' is missing\n", rest[0])
			return 1
		case value:
			flags[name], rest = rest[1], rest[2:]
		default:
			flags[name], rest = "yes", rest[1:]
		}
	}
	if fault == "fail" {
		fmt.Fprintln(out,
			"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
		return 1
	}
	s := &standin{out: out, err: errs}
	c, err := s.start(rest)
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	if fault == "kill" {
		kill(os.Getpid())
	}
	ignoreInterrupt()
	_ = c.Wait()
	text := "==PROF== Connected to process 7 (python)\n==PROF== Disconnected from process 7\n"
	if fault == "no_kernels" || fault == "no_nvtx" && flags["nvtx"] != "" {
		text += "==WARNING== No kernels were profiled.\n"
	} else {
		text += `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","","","","","us","%"
"0","7","python","host","decode_attn","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","12.50","41.00"
`
	}
	if err := os.WriteFile(flags["log-file"], []byte(text), 0o644); err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}
