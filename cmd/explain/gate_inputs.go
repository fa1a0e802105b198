package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/cmd/explain/internal/gitfile"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate"
)

// findInputs are the inputs that a list of file names, globs and lists separated by commas names. A glob that matches
// nothing is an error: a side must not get smaller in silence.
func findInputs(flag string, names []string) ([]input, error) {
	paths, err := expand(flag, names)
	if err != nil {
		return nil, err
	}
	var list []input
	for _, p := range paths {
		in, err := findInput(p)
		if err != nil {
			return nil, err
		}
		if in.kind == summaryInput {
			return nil, usagef("%s: %s is a summary.json, which holds totals: name the trace or its report.json", flag, p)
		}
		list = append(list, in)
	}
	return list, nil
}

// expand turns names into paths: what exists is taken as it is, else split at commas, else a glob.
func expand(flag string, names []string) ([]string, error) {
	var list []string
	for _, name := range names {
		parts := []string{name}
		if !exists(name) {
			parts = strings.Split(name, ",")
		}
		for _, p := range parts {
			if p = strings.TrimSpace(p); p == "" {
				return nil, usagef("%s: a file name is empty", flag)
			}
			if exists(p) || !strings.ContainsAny(p, "*?[") {
				list = append(list, p)
				continue
			}
			found, err := filepath.Glob(p)
			if err != nil {
				return nil, usagef("%s %s: %w", flag, p, err)
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s %s matches no file", flag, p)
			}
			list = append(list, found...)
		}
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// baseline is what the head is compared with, and where that came from.
type baseline struct {
	inputs  []input
	reports []*report.Report
	source  string
	sha     string // that was measured, where known
	notes   [][]doc.Span
}

// baseline finds the base: the files that were named, else an artifact of the base branch, else a checked-in file.
func (f *gateFlags) baseline(ctx context.Context, h *hub) (baseline, error) {
	if len(f.base) > 0 {
		inputs, err := findInputs("--base", f.base)
		return baseline{inputs: inputs, source: "files of this job"}, err
	}
	why := "no --base was given"
	if f.baselineArtifact != "" {
		b, err := h.artifactBaseline(ctx, f.baselineArtifact, f.baselineBranch)
		var none *gate.NoBaseline
		if err == nil || !errors.As(err, &none) {
			return b, err
		}
		why = none.Reason
	}
	if f.baselineFile != "" {
		if exists(f.baselineFile) {
			inputs, err := findInputs("--baseline-file", []string{f.baselineFile})
			b := baseline{inputs: inputs, source: "file " + filepath.ToSlash(f.baselineFile)}
			if f.baselineArtifact != "" {
				b.notes = [][]doc.Span{{doc.Text("No artifact to compare with: " + why + ". Compared with a checked-in file instead.")}}
			}
			return b, err
		}
		why += "; there is no file " + filepath.ToSlash(f.baselineFile)
	}
	return baseline{notes: [][]doc.Span{{doc.Text("No baseline (first run): " + why + ". Only budgets are judged.")}}}, nil
}

// readBaseline takes the reports out of an artifact's files, and leaves everything else alone.
func readBaseline(files []gate.File) ([]*report.Report, error) {
	var list []*report.Report
	for _, f := range files {
		r, err := report.Read(bytes.NewReader(f.Data))
		if err != nil {
			if strings.HasSuffix(f.Name, "report.json") {
				return nil, fmt.Errorf("%s: %w", clean(f.Name), err)
			}
			continue // summary.json and the like
		}
		list = append(list, r)
	}
	return list, nil
}

// policyChoice is the policy that judges, and what is to be said of where it came from.
type policyChoice struct {
	policy *policy.Policy
	source string
	notes  [][]doc.Span
}

const headRef = "head"

// readPolicy reads the policy file, in a pull request as it is at the base: a change cannot loosen the rules it is judged by.
func (f *gateFlags) readPolicy(ctx context.Context, h *hub) (policyChoice, error) {
	if f.policy == "" {
		if f.policyRef != "" && f.policyRef != headRef {
			return policyChoice{}, usagef("--policy-ref says where --policy is read; name the file too")
		}
		p := policy.Default()
		return policyChoice{policy: p, source: "default rules"}, nil
	}
	name := filepath.ToSlash(f.policy)
	ref := f.policyRef
	if ref == "" {
		ref = h.baseCommit()
	}
	if ref == "" || ref == headRef {
		p, err := policyFile(f.policy)
		return policyChoice{policy: p, source: name}, err
	}
	here, hereErr := f.policyHere(ctx, h)
	there, err := f.policyAt(ctx, h, ref)
	switch {
	case err == nil:
		p, err := policyText(name+" at "+shortRef(ref), there)
		c := policyChoice{policy: p, source: name + " at " + shortRef(ref)}
		if hereErr != nil || !bytes.Equal(here, there) {
			c.notes = [][]doc.Span{{doc.Text("The policy "), doc.Name(name), doc.Text(" is changed here; judged by the one at "), doc.Name(shortRef(ref)), doc.Text(".")}}
		}
		return c, err
	case f.policyRef != "" && !errors.Is(err, gate.ErrNotFound):
		return policyChoice{}, fmt.Errorf("--policy-ref %s: %w", ref, err)
	case hereErr != nil:
		return policyChoice{}, usagef("--policy: %w", hereErr)
	}
	p, parseErr := policyText(name, here)
	why := " could not be read at the base"
	if errors.Is(err, gate.ErrNotFound) {
		why = " is new here"
	}
	return policyChoice{policy: p, source: name, notes: [][]doc.Span{{doc.Text("The policy "), doc.Name(name), doc.Text(why + "; judged by the one of this change.")}}}, parseErr
}

// policyHere reads the policy file of the change: as git has it at the commit that a pull request's job was started for, since
// the job may have checked out the base to measure it, else the file that lies here.
func (f *gateFlags) policyHere(ctx context.Context, h *hub) ([]byte, error) {
	if h != nil && h.run.Event == "pull_request" && h.run.SHA != "" {
		if b, err := gitfile.Show(ctx, f.policy, h.run.SHA, maxPolicy); err == nil {
			return b, nil
		}
	}
	return readLimited(f.policy)
}

// policyAt reads the policy file at a ref: from GitHub, which knows every commit, or by git, which knows those of the checkout.
func (f *gateFlags) policyAt(ctx context.Context, h *hub, ref string) ([]byte, error) {
	if h != nil {
		b, err := h.file(ctx, f.policy, ref)
		if err == nil || errors.Is(err, gate.ErrNotFound) {
			return b, err
		}
		h.err("the policy could not be read from GitHub, trying git: " + err.Error())
	}
	b, err := gitfile.Show(ctx, f.policy, ref, maxPolicy)
	if errors.Is(err, gitfile.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", gate.ErrNotFound, err)
	}
	return b, err
}

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 1 << 20

// shortRef shortens a commit as GitHub does, and leaves names alone.
func shortRef(ref string) string {
	if len(ref) == 40 && strings.Trim(ref, "0123456789abcdef") == "" {
		return ref[:7]
	}
	return ref
}

func readNoise(path string) (*diff.Noise, error) {
	b, err := readLimited(path)
	if err != nil {
		return nil, usagef("--noise: %w", err)
	}
	n, err := diff.ReadNoise(bytes.NewReader(b))
	if err != nil {
		return nil, usagef("--noise %s: %w; explain calibrate writes one", path, err)
	}
	return n, nil
}

// reportName is a folder name for the report of a capture, unlike any other: taken from its file's name, in characters that
// every file system and artifact store takes.
func reportName(path string, taken map[string]bool) string {
	base := filepath.Base(path)
	if base == "report.json" {
		if dir := filepath.Base(filepath.Dir(path)); dir != "." && dir != string(filepath.Separator) {
			base = dir
		}
	}
	for _, ext := range []string{".gz", ".zst", ".sqlite", ".nsys-rep", ".json"} {
		base = strings.TrimSuffix(base, ext)
	}
	name := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, base)
	if name = strings.TrimLeft(name, "."); name == "" {
		name = "capture"
	}
	name = name[:min(len(name), 60)]
	unique := name
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}
