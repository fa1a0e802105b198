package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/cmd/explain/internal/gitfile"
	"github.com/nsys-llm/explain/diff/policy"
	"github.com/nsys-llm/explain/gate"
)

// policyChoice is the policy that judges, and what is to be said of where it came from.
type policyChoice struct {
	policy *policy.Policy
	source string
	notes  [][]doc.Span
}

// headRef is the --policy-ref that reads the policy as it is here.
const headRef = "head"

// baseCommit is the commit at the base of the pull request; empty where there is none.
func baseCommit(s *gate.Session) string {
	if s == nil {
		return ""
	}
	return s.BaseSHA()
}

// readPolicy reads the policy file, in a pull request as it is at the base: a change cannot loosen the rules it is
// judged by.
func (f *gateFlags) readPolicy(ctx context.Context, s *gate.Session) (policyChoice, error) {
	if f.rules.policy == "" {
		if f.policyRef != "" && f.policyRef != headRef {
			return policyChoice{}, usagef("--policy-ref says where --policy is read; name the file too")
		}
		c := policyChoice{policy: policy.Default(), source: "default rules"}
		if len(f.rules.failOn) > 0 {
			c.source = "rules of --fail-on"
		}
		return c, nil
	}
	name := filepath.ToSlash(f.rules.policy)
	ref := f.policyRef
	if ref == "" {
		ref = baseCommit(s)
	}
	if ref == "" || ref == headRef {
		p, err := policyFile(f.rules.policy)
		return policyChoice{policy: p, source: name}, err
	}
	here, hereErr := f.policyHere(ctx, s)
	there, err := f.policyAt(ctx, s, ref)
	switch {
	case err == nil:
		p, err := policyText(name+" at "+shortRef(ref), there)
		c := policyChoice{policy: p, source: name + " at " + shortRef(ref)}
		if hereErr != nil || !bytes.Equal(here, there) {
			c.notes = [][]doc.Span{{doc.Text("The policy "), doc.Name(name),
				doc.Text(" is changed here; judged by the one at "), doc.Name(shortRef(ref)), doc.Text(".")}}
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
	return policyChoice{policy: p, source: name,
		notes: [][]doc.Span{{doc.Text("The policy "), doc.Name(name),
			doc.Text(why + "; judged by the one of this change.")}}}, parseErr
}

// policyHere reads the policy file of the change: as git has it at the commit that a pull request's job was started
// for, since the job may have checked out the base to measure it, else the file that lies here.
func (f *gateFlags) policyHere(ctx context.Context, s *gate.Session) ([]byte, error) {
	if s != nil && s.Run.Event == "pull_request" && s.Run.SHA != "" {
		if b, err := gitfile.Show(ctx, f.rules.policy, s.Run.SHA, maxPolicy); err == nil {
			return b, nil
		}
	}
	return readLimited(f.rules.policy)
}

// policyAt reads the policy file at a ref: from GitHub, which knows every commit, or by git, which knows those of the
// checkout.
func (f *gateFlags) policyAt(ctx context.Context, s *gate.Session, ref string) ([]byte, error) {
	if s != nil {
		b, err := s.File(ctx, f.rules.policy, ref, maxPolicy)
		if err == nil || errors.Is(err, gate.ErrNotFound) {
			return b, err
		}
		s.Say("the policy could not be read from GitHub, trying git: " + err.Error())
	}
	b, err := gitfile.Show(ctx, f.rules.policy, ref, maxPolicy)
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
