package compat

import (
	"math"

	"github.com/nsys-llm/explain/analyze/compat/perfopt"
	"github.com/nsys-llm/explain/analyze/internal/stat"
)

// term is one part of the operations of a stage.
type term struct {
	stage, name, formula string
	flops                float64
}

// modelRun is a run, and the numbers that can be computed from it.
type modelRun struct {
	run             *perfopt.Run
	prompt, context *float64 // tokens
	promptFrom      string
	terms           []term
	bytes           map[string]float64 // by stage
}

// lengths finds the tokens of prompt and context. llm-perf-opt does not write down the length of the prompt, but the
// utilisation that it states for prefill depends on it: the length S solves L (4 d d_ff + 2 d²) S + L d S (S + 1) = MFU
// × peak × time, and is a whole number if the file is consistent. For decode llm-perf-opt takes the context S + T/2, or
// the one that its configuration fixes.
func (u *modelRun) lengths(c perfopt.Context) {
	r := u.run
	if u.prompt = u.solvePrompt(); u.prompt != nil {
		u.promptFrom = "solved from the stated utilisation of prefill"
	}
	switch {
	case u.prompt != nil && r.Tokens.Mean != nil:
		u.context = new(*u.prompt + *r.Tokens.Mean/2)
	case c.Mode == "fixed" && c.Fixed > 0:
		u.context = new(float64(c.Fixed))
	}
}

func (u *modelRun) solvePrompt() *float64 {
	r := u.run
	stated, prefill := r.Stated["prefill"], r.Stage("prefill")
	if r.Dims == nil || r.StatedMax == nil || prefill == nil || stated <= 0 {
		return nil
	}
	d, ff, l := r.Dims.Model, r.Dims.FF, r.Dims.Layers
	a, b := l*d, l*(4*d*ff+2*d*d)+l*d
	c := stated * *r.StatedMax * *prefill.Time.Mean / 1e9
	s := 2 * c / (b + math.Sqrt(b*b+4*a*c))
	if whole := math.Round(s); whole >= 1 && whole < 1e8 && math.Abs(s-whole) < 0.01 {
		return &whole
	}
	return nil
}

// count adds up the operations, two for each multiplication with its addition.
func (u *modelRun) count() {
	r, d := u.run, u.run.Dims
	if d == nil {
		return
	}
	add := func(stage, name, formula string, flops float64) {
		u.terms = append(u.terms, term{stage, name, formula, flops})
	}
	part := func(stage, n string, tokens float64) {
		add(stage, "projections (Q, K, V, O)", n+" L 8 d²", tokens*d.Layers*8*d.Model*d.Model)
		add(stage, "feed-forward, gated", n+" L 6 d d_ff", tokens*d.Layers*6*d.Model*d.FF)
	}
	if u.prompt != nil && r.Stage("prefill") != nil {
		s := *u.prompt
		part("prefill", "S", s)
		add("prefill", "attention, causal", "L 2 d S (S + 1)", d.Layers*2*d.Model*s*(s+1))
		if v, t := r.Stated["vision"], r.Stage("vision"); v > 0 && t != nil && r.StatedMax != nil {
			add("prefill", "vision encoder", "as llm-perf-opt states it", v**r.StatedMax**t.Time.Mean/1e9)
		}
	}
	if u.context != nil && r.Tokens.Mean != nil && r.Stage("decode") != nil {
		t := *r.Tokens.Mean
		part("decode", "T", t)
		add("decode", "attention", "T L 4 d C", t*d.Layers*4*d.Model**u.context)
	}
}

// traffic adds up the bytes that must move, with elements of the given size.
func (u *modelRun) traffic(size float64) {
	r, d := u.run, u.run.Dims
	if d == nil {
		return
	}
	weights := size * d.Layers * (4*d.Model*d.Model + 3*d.Model*d.FF)
	token := size * d.Layers * 2 * d.Model
	if u.prompt != nil && r.Stage("prefill") != nil {
		u.bytes["prefill"] = weights + *u.prompt*token
	}
	if u.context != nil && r.Tokens.Mean != nil && r.Stage("decode") != nil {
		u.bytes["decode"] = *r.Tokens.Mean * (weights + (*u.context+1)*token)
	}
}

// flops of a stage, nil if they are not known; model is prefill and decode.
func (u *modelRun) flops(stage string) *float64 {
	if stage == "model" {
		return sumOf(u.flops("prefill"), u.flops("decode"))
	}
	sum, any := 0.0, false
	for _, t := range u.terms {
		if t.stage == stage {
			sum, any = sum+t.flops, true
		}
	}
	if !any {
		return nil
	}
	return &sum
}

func (u *modelRun) moved(stage string) *float64 {
	if stage == "model" {
		return sumOf(u.moved("prefill"), u.moved("decode"))
	}
	if b, ok := u.bytes[stage]; ok {
		return &b
	}
	return nil
}

// time of a stage in ns; that of the model is prefill and decode, since the vision stages run inside prefill.
func (u *modelRun) time(stage string) *float64 {
	if stage == "model" {
		return sumOf(u.time("prefill"), u.time("decode"))
	}
	if s := u.run.Stage(stage); s != nil {
		return s.Time.Mean
	}
	return nil
}

func sumOf(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// over is a over b, times a factor; nil if one is unknown or b is 0.
func over(a, b *float64, factor float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return stat.Ratio(*a*factor, *b)
}
