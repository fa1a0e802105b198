package ci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/gate"
)

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
		check("token", "it reads contents, pull requests, runs and checks; what it may write shows when it writes", reads(ctx, e))
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
	cmd := exec.CommandContext(ctx, nsys, "profile", "--trace=osrt", "--sample=none", "--cpuctxsw=none", "-o", strings.TrimSuffix(file, ".nsys-rep"), "true")
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
	if code := e.Run(ctx, []string{"report", file, "--quiet", "--out", filepath.Join(dir, "report")}, &quiet); code != cmdenv.OK {
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
