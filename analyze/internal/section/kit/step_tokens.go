package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// StepTokens are the tokens that a kept unit computes, by its marker: one for each request in decode, those of prompts,
// and how many prompts there are (0 if it does not say); ok is false if it states no number of tokens.
func (in *Input) StepTokens(u *workunit.Unit) (decode, prompt, prompts int64, ok bool) {
	if u.State != workunit.Kept || u.Marker == trace.None || u.Group < 0 {
		return 0, 0, 0, false
	}
	r := &in.Trace.Ranges
	mark, read := kernelname.ParseMarker(r.Names[r.Name(int(u.Marker))].Text)
	g := &in.Units.Groups[u.Group]
	if !read {
		return 0, 0, 0, false
	}
	decode = max(mark.DecodeTokens, mark.DecodeRequests)
	if decode < 0 && g.Phase == kernelname.PhaseDecode {
		decode = g.Batch
	}
	prompt, prompts = mark.PrefillTokens, mark.PrefillRequests
	if g.Phase != kernelname.PhaseDecode && prompt < 0 || g.Phase == kernelname.PhaseDecode && decode < 0 {
		return 0, 0, 0, false
	}
	if prompts < 0 && decode <= 0 {
		prompts = g.Batch
	}
	return max(0, decode), max(0, prompt), max(0, prompts), true
}
