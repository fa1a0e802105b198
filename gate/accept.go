package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/diff/comparison"
)

// acceptance is what a label accepted: a head, and how much worse each gate was that failed there. The comment's marker
// keeps it, so that a later head is held to the accepted sizes. The zero value accepts nothing.
type acceptance struct {
	head  string
	sizes []size // none: some failure has no size, and no other head is accepted
}

// size is how much worse a gate was: a ratio above 1, whichever way is worse.
type size struct {
	gate  string // hash of rule, metric and labels
	worse float64
}

const (
	// maxSizes bounds what a marker keeps; where more gates failed, the label counts for its head only.
	maxSizes = 60
	// sizeSlack is by how much a size may exceed the accepted one: the same code, measured twice, is not equal.
	sizeSlack = 0.01
)

func (a acceptance) String() string {
	if !commit.MatchString(a.head) {
		return ""
	}
	var b strings.Builder
	b.WriteString(a.head)
	for _, s := range a.sizes {
		fmt.Fprintf(&b, ",%s=%.4f", s.gate, s.worse)
	}
	return b.String()
}

// readAcceptance reads what String wrote; anything else accepts nothing.
func readAcceptance(text string) acceptance {
	head, rest, more := strings.Cut(text, ",")
	if !commit.MatchString(head) {
		return acceptance{}
	}
	a := acceptance{head: head}
	for more && len(a.sizes) < maxSizes {
		var part string
		part, rest, more = strings.Cut(rest, ",")
		gate, value, _ := strings.Cut(part, "=")
		worse, err := strconv.ParseFloat(value, 64)
		if err != nil || len(gate) != 8 || !(worse >= 1) {
			return acceptance{}
		}
		a.sizes = append(a.sizes, size{gate, worse})
	}
	return a
}

// accept is the acceptance of what failed at a head.
func accept(head string, c *comparison.Comparison) acceptance {
	sizes, ok := failures(c)
	if !ok || len(sizes) > maxSizes {
		sizes = nil
	}
	return acceptance{head, sizes}
}

// covers reports whether all that fails in a comparison was accepted, and is no worse.
func (a acceptance) covers(c *comparison.Comparison) bool {
	now, ok := failures(c)
	if !ok || len(a.sizes) == 0 {
		return false
	}
	accepted := map[string]float64{}
	for _, s := range a.sizes {
		accepted[s.gate] = s.worse
	}
	for _, s := range now {
		if limit, ok := accepted[s.gate]; !ok || s.worse > limit+sizeSlack {
			return false
		}
	}
	return true
}

// failures are the sizes of what makes a comparison fail; false where something of it has none, such as a change of
// structure, a budget, or sides that cannot be compared.
func failures(c *comparison.Comparison) (list []size, ok bool) {
	for i := range c.Gates {
		g := &c.Gates[i]
		switch {
		case comparison.Rank(g.CountsAs) < comparison.Rank(comparison.Fail):
			continue
		case g.Verdict != comparison.Fail || g.Ratio == nil || !(*g.Ratio > 0):
			return nil, false
		}
		sum := sha256.Sum256([]byte(g.Rule + "\x00" + g.Metric + "\x00" + g.Labels.String()))
		list = append(list, size{hex.EncodeToString(sum[:4]), math.Exp(math.Abs(math.Log(*g.Ratio)))})
	}
	return list, len(list) > 0
}

// Override accepts a failure where the label is on the pull request, in a merge queue on the last of the group, for
// what is measured here: it was set since this head is the pull request's, or what it accepted then was as bad. An
// empty label accepts nothing, and neither does one that the token's own app set, which the code of a change may have
// been.
func (s *Session) Override(ctx context.Context, c *comparison.Comparison, name string) {
	number := s.Number
	if number == 0 && s.Run.Push != nil {
		number = s.Run.Push.Queued
	}
	if name == "" || number == 0 || !s.token || c.Verdict != comparison.Fail {
		return
	}
	l, err := s.client.label(ctx, number, name)
	switch {
	case err != nil:
		s.o.Say("the label " + name + " could not be looked up: " + err.Error())
		return
	case l == nil:
		return
	case l.bot && s.client.wroteIt(ctx, &github.User{Login: &l.By, Type: github.String("Bot")}):
		s.o.Say("the label " + l.Name + " counts only where a person set it, and " + l.By + " did")
		return
	}
	if s.Number != 0 && s.Run.setHere(l) {
		s.accepted = accept(s.HeadSHA(), c)
		c.Accept(l.Name, l.By)
		return
	}
	before, err := s.client.accepted(ctx, number, s.key)
	if err != nil {
		s.o.Say("what the label " + l.Name + " accepted could not be looked up: " + err.Error())
		return
	}
	if before.head != "" && s.Number != 0 && before.head == s.HeadSHA() || before.covers(c) {
		c.Accept(l.Name, l.By)
		return
	}
	s.o.Say("the label " + l.Name + " was set for another head" + atHead(before.head) + ", and what is measured here is " +
		"worse than what it accepted, or was not accepted then: take it off and set it again")
}

func atHead(sha string) string {
	if sha == "" {
		return ""
	}
	return " (" + short(sha) + ")"
}

// setHere reports whether a label was set since the head is the pull request's.
func (r *Run) setHere(l *label) bool {
	return r.Action == "labeled" && strings.EqualFold(r.labelled, l.Name) ||
		!r.headSince.IsZero() && !l.At.IsZero() && !l.At.Before(r.headSince)
}

// accepted is what our comment of a key says was accepted; the zero value where there is none.
func (c *client) accepted(ctx context.Context, number int, key string) (acceptance, error) {
	u := &upsert{c: c, number: number, marker: marker{key: CleanKey(key)}}
	mine, err := u.list(ctx)
	if err != nil || len(mine) == 0 {
		return acceptance{}, err
	}
	return mine[0].accepted, nil
}
