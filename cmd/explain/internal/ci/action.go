package ci

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/gate"
)

// newAction is the hidden command that action.yml runs: it reads the inputs of the action as a JSON object from $INPUTS
// and runs the step that they describe. No shell ever parses a value as part of a command line.
func newAction(e *cmdenv.Env) *cobra.Command {
	return &cobra.Command{
		Use:    "action",
		Short:  "Run a step of the GitHub action, as its inputs in INPUTS say",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in := actionInputs{}
			if err := json.Unmarshal([]byte(e.Getenv(ActionInputs)), &in); err != nil {
				return usage.Errorf("INPUTS is not what toJSON(inputs) writes: %w", err)
			}
			return in.run(cmd.Context(), e)
		},
	}
}

// ActionInputs names the environment variable that holds the inputs of the action, including a token.
const ActionInputs = "INPUTS"

// actionInputs maps the name of each input of the action to its value.
type actionInputs map[string]string

func (in actionInputs) lines(name string) []string {
	var list []string
	for line := range strings.Lines(in[name]) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			list = append(list, line)
		}
	}
	return list
}

// Inputs that become flags of the commands. exit-on always has a value, so its older name fail-on comes after it and
// wins.
var (
	sharedInputs = []string{"accept-by", "comment", "comment-key", "exit-on", "fail-on", "out", "pr-number",
		"report-url", "status"}
	gateInputs = []string{"artifact", "base-commit", "baseline-artifact", "baseline-branch", "baseline-file",
		"history", "history-artifact", "noise", "phase", "phase-map", "policy", "policy-ref", "unit"}
	renamedInputs = map[string]string{"pr-number": "pull-request", "fail-on": "exit-on"} // to the name of their flag
)

// flags returns the inputs of these names as flags, but for empty ones.
func (in actionInputs) flags(names ...string) (list []string) {
	for _, name := range names {
		if in[name] != "" {
			list = append(list, "--"+cmp.Or(renamedInputs[name], name)+"="+in[name])
		}
	}
	return list
}

// args returns the command line that the inputs stand for. Each value is one argument, whatever it contains.
func (in actionInputs) args() []string {
	args := []string{in["command"]}
	if in["command"] == "comment" {
		args = []string{"gate", "comment"}
	}
	each := func(flag, name string) {
		for _, line := range in.lines(name) {
			args = append(args, "--"+flag+"="+line)
		}
	}
	args = append(args, in.flags(sharedInputs...)...)
	args = append(args, "--override-label="+in["override-label"]) // empty: no label overrides
	if in["allow-unsafe"] == "true" {
		args = append(args, "--allow-unsafe")
	}
	if in["command"] == "comment" {
		args = append(args, in.flags("expect")...)
		if each("comparison", "candidate"); len(in.lines("candidate")) > 0 {
			args = append(args, "--merge")
		}
		return args
	}
	args = append(args, in.flags(gateInputs...)...)
	each("base", "baseline")
	each("head", "candidate")
	return args
}

func (in actionInputs) run(ctx context.Context, e *cmdenv.Env) error {
	switch in["command"] {
	case "gate", "comment":
		return cmdenv.Exited(e.Run(ctx, in.args(), e))
	case "report":
		return in.told(e, in.report(ctx, e))
	case "doctor":
		return in.doctor(ctx, e)
	case "install": // the caller has already installed explain
		return nil
	}
	// Report the error the way a gate does: readers look for the verdict there.
	var f gateFlags
	cmd := &cobra.Command{}
	f.register(cmd)
	command := in["command"]
	in["command"] = "gate"
	if err := cmd.ParseFlags(in.args()[1:]); err != nil {
		return usage.Error{Err: err}
	}
	session, err := f.github.session(ctx, e, f.out)
	if err == nil {
		err = usage.Errorf("the input command is %q, which is not one of gate, report, comment, doctor, install", command)
	}
	return f.failed(ctx, e, session, err)
}

// told annotates the workflow step with an error, and returns the error.
func (in actionInputs) told(e *cmdenv.Env, err error) error {
	if err != nil {
		fmt.Fprintf(e.Out, "::error title=explain::%s\n", strings.NewReplacer("%", "%25", "\r", " ", "\n", " ").Replace(render.Visible(err.Error())))
	}
	return err
}

// report analyses the captures of both sides into folders below out, which hold reports of this run only.
func (in actionInputs) report(ctx context.Context, e *cmdenv.Env) error {
	out := in["out"]
	for _, side := range []string{"base", "head"} {
		switch other, err := output.RemoveReports(filepath.Join(out, side)); {
		case err != nil:
			return err
		case other != "":
			return usage.Errorf("%s is there, and explain did not write it all: "+
				"name another folder in out, or remove it", other)
		}
	}
	measured := measuredBy(e)
	for _, side := range []struct{ name, input string }{{"base", "baseline"}, {"head", "candidate"}} {
		n := 0
		for _, line := range in.lines(side.input) {
			files, err := input.Expand("the input "+side.input, []string{line})
			if err != nil {
				return fmt.Errorf("no capture of the %s is where the input says: %w", side.name, err)
			}
			slices.Sort(files)
			for _, file := range files {
				n++
				name, _, _ := strings.Cut(filepath.Base(file), ".")
				dir := filepath.Join(out, side.name, strconv.Itoa(n)+"-"+name)
				args := []string{"report", file, "--quiet", "--out", dir}
				args = append(args, in.flags("unit", "phase-map")...)
				if code := e.Run(ctx, args, e); code != cmdenv.OK {
					return fmt.Errorf("%s of the %s could not be analysed: the log says why (exit %d)", render.Visible(filepath.Base(file)), side.name, code)
				}
				if err := stamp(filepath.Join(dir, "report.json"), measured); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// measuredBy identifies the workflow run of this step; nil outside GitHub Actions.
func measuredBy(e *cmdenv.Env) *report.MeasuredBy {
	id, err := strconv.ParseInt(e.Getenv("GITHUB_RUN_ID"), 10, 64)
	if err != nil || e.Getenv("GITHUB_ACTIONS") != "true" {
		return nil
	}
	attempt, _ := strconv.ParseInt(e.Getenv("GITHUB_RUN_ATTEMPT"), 10, 64)
	return &report.MeasuredBy{ID: id, Attempt: max(attempt, 1), Base: e.Getenv("GITHUB_BASE_REF")}
}

// stamp records in a report which workflow run made it.
func stamp(path string, by *report.MeasuredBy) error {
	r, err := input.ReadReport(path)
	if err != nil {
		return err
	}
	r.Trace.Run = by
	return atomicfile.File(path, atomicfile.Any, func(w io.Writer) error { return report.Write(w, r) })
}

const (
	doctorBytes = 64 << 20         // bytes that a capture needs at least
	doctorLimit = 90 * time.Second // for an empty test recording, which takes about six seconds
)

// doctor checks, before any GPU is used, everything that would make a run fail later: nsys, a test recording and its
// report, the driver, disk space, the output folder, the policy, the token. It returns all failed checks as one error
// and prints what it could not check.
func (in actionInputs) doctor(ctx context.Context, e *cmdenv.Env) error {
	var wrong []string
	check := func(what, detail string, err error) {
		sign := "ok   "
		if err != nil {
			sign, detail = "WRONG", err.Error()
			wrong = append(wrong, what+": "+detail)
		}
		fmt.Fprintf(e.Out, "%s %s: %s\n", sign, what, gate.Defuse(render.Visible(detail)))
	}
	unknown := func(what, why string) { fmt.Fprintf(e.Out, "?     %s: %s\n", what, why) }

	nsys, err := capture.FindNsys(ctx, "nsys")
	if err != nil {
		check("nsys", "", err)
	} else {
		check("nsys", nsys.Version+" at "+nsys.Path, nil)
		check("recording", "nsys recorded a program, and explain read what it left", records(ctx, nsys.Path, e))
	}
	if b, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		line, _, _ := strings.Cut(string(b), "\n")
		check("driver", strings.TrimSpace(line), nil)
	} else {
		unknown("driver", "/proc/driver/nvidia/version cannot be read: whether a GPU is here is not known")
	}
	check("disk", fmt.Sprintf("%d MB could be written to the working directory", doctorBytes>>20), writable())
	if in["out"] != "" {
		check("out", in["out"], output.Check(in["out"]))
	}
	if name := in["policy"]; name != "" {
		if _, missing := os.Stat(name); os.IsNotExist(missing) {
			unknown("policy", "it is not in this checkout; the judge reads it at the base")
		} else {
			_, err := rulesfile.Policy(name)
			check("policy", name, err)
		}
	}
	if e.Getenv("GITHUB_TOKEN") == "" {
		unknown("token", "none was given to this step, as it should be where code of the change runs")
	} else {
		check("token", "it reads contents, pull requests, runs and checks; what it may write shows when it writes",
			reads(ctx, e))
	}
	if len(wrong) > 0 {
		return in.told(e, errors.New(strings.Join(wrong, "; ")))
	}
	return nil
}

// records has nsys record a program that does nothing, and reports on the recording. An nsys without its importer exits
// with 0 and leaves only a raw stream.
func records(ctx context.Context, nsys string, e *cmdenv.Env) error {
	dir, err := os.MkdirTemp("", "explain-doctor-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	file := filepath.Join(dir, "nothing.nsys-rep")
	cmd := exec.CommandContext(ctx, nsys, "profile", "--trace=osrt", "--sample=none", "--cpuctxsw=none",
		"-o", strings.TrimSuffix(file, ".nsys-rep"), "true")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	said, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("nsys profile of a program that does nothing took longer than %s", doctorLimit)
	}
	if err != nil {
		return fmt.Errorf("nsys profile: %w: %s", err, lastWords(said))
	}
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("nsys profile exits with 0 and leaves no .nsys-rep (%s): install all of Nsight Systems, with its importer", lastWords(said))
	}
	quiet := *e
	var out strings.Builder
	quiet.Out, quiet.Err = io.Discard, &out
	args := []string{"report", file, "--quiet", "--out", filepath.Join(dir, "report")}
	if code := e.Run(ctx, args, &quiet); code != cmdenv.OK {
		return fmt.Errorf("the recording cannot be read: %s", lastWords([]byte(out.String())))
	}
	return nil
}

// lastWords returns the last line of a program's output.
func lastWords(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// writable writes a file of doctorBytes to the working directory, and removes it.
func writable() error {
	f, err := os.CreateTemp(".", ".explain-doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, doctorBytes))
	return errors.Join(err, f.Close())
}

// reads requests from GitHub what a gate step has to read.
func reads(ctx context.Context, e *cmdenv.Env) error {
	var f githubFlags
	f.comment, f.exitOn = "never", exitLevels[0]
	s, err := f.session(ctx, e, "")
	if err != nil || s == nil {
		return err
	}
	return gate.Reads(ctx, s)
}
