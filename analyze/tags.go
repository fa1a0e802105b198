package analyze

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// PhaseMap maps NVTX range names to phases, as --phase-map does. The first phase, in the order of the file, with a
// pattern that matches wins.
type PhaseMap struct {
	Name   string // the file's own name
	file   report.MapFile
	phases []phase
}

type phase struct {
	name     string
	patterns []pattern
}

// pattern is a case-insensitive substring, or a case-sensitive regular expression where it was written re:….
type pattern struct {
	substring string
	expr      *regexp.Regexp
}

func (p *pattern) match(raw, lower string) bool {
	if p.expr != nil {
		return p.expr.MatchString(raw)
	}
	return strings.Contains(lower, p.substring)
}

// parsePattern reads a substring, whose case does not matter, or re:REGEX.
func parsePattern(text string) (pattern, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "re:" {
		return pattern{}, errors.New("a pattern is empty, which would match everything")
	}
	expr, ok := strings.CutPrefix(text, "re:")
	if !ok {
		return pattern{substring: strings.ToLower(text)}, nil
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", text, err)
	}
	return pattern{expr: re}, nil
}

// maxPhases is what fits into a range's tag.
const maxPhases = 1000

// ParsePhaseMap reads {"phase": ["pattern", "re:regex"], …}; a single pattern need not be in a list. Errors wrap
// ErrOptions.
func ParsePhaseMap(name string, text []byte) (*PhaseMap, error) {
	wrong := func(format string, args ...interface{}) error {
		return fmt.Errorf("%w: phase map %s: %s", ErrOptions, name, fmt.Sprintf(format, args...))
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, wrong(`is not a JSON object; expected {"prefill": ["prefill", "re:^prompt"], …}`)
	}
	m := &PhaseMap{Name: name, file: mapFile("phase", name, text)}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, wrong("%v", err)
		}
		ph := phase{name: key.(string)}
		if ph.name == "" || seen[ph.name] {
			return nil, wrong("phase %q appears twice or has no name", ph.name)
		}
		seen[ph.name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, wrong("phase %q: %v", ph.name, err)
		}
		var list []string
		if err := json.Unmarshal(value, &list); err != nil {
			var one string
			if json.Unmarshal(value, &one) != nil {
				return nil, wrong("phase %q: expected a pattern or a list of patterns", ph.name)
			}
			list = []string{one}
		}
		for _, text := range list {
			p, err := parsePattern(text)
			if err != nil {
				return nil, wrong("phase %q: %v", ph.name, err)
			}
			ph.patterns = append(ph.patterns, p)
		}
		m.phases = append(m.phases, ph)
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong("%v", err)
	}
	if d.More() {
		return nil, wrong("has something after the object")
	}
	if len(m.phases) > maxPhases {
		return nil, wrong("has %d phases, %d are allowed", len(m.phases), maxPhases)
	}
	return m, nil
}

func (m *PhaseMap) find(raw string) int {
	raw = strings.TrimSpace(raw)
	lower := strings.ToLower(raw)
	return slices.IndexFunc(m.phases, func(p phase) bool {
		return slices.ContainsFunc(p.patterns, func(p pattern) bool { return p.match(raw, lower) })
	})
}

// tagger decides, once per distinct raw range name, everything that depends on the raw text: its phase, whether it
// marks a unit and whether it is in the window. The canonical name is too coarse for that.
type tagger struct {
	phaseMap *PhaseMap
	builtin  []string // phases found by the built-in patterns, in order of first appearance
	unit     workunit.Spec
	window   *regexp.Regexp
}

// Bits of a range's tag.
const (
	tagPhase  = 1<<12 - 1 // 1 + index of the phase; 0 none
	tagUnit   = 1 << 12
	tagWindow = 1 << 13
)

func newTagger(opt *Options) (*tagger, error) {
	t := &tagger{phaseMap: opt.Phases}
	var err error
	if t.unit, err = workunit.ParseSpec(opt.Unit); err != nil {
		return nil, fmt.Errorf("%w: --unit: %v", ErrOptions, err)
	}
	if opt.Window.NVTX != "" {
		if t.window, err = regexp.Compile(opt.Window.NVTX); err != nil {
			return nil, fmt.Errorf("%w: --window: %v", ErrOptions, err)
		}
	}
	return t, nil
}

func (t *tagger) tag(raw string) uint32 {
	var tag uint32
	if t.phaseMap != nil {
		tag = uint32(t.phaseMap.find(raw) + 1)
	} else if name := kernelname.BuiltinPhase(raw); name != "" {
		tag = lists.Place[uint32](&t.builtin, name) + 1
	}
	if t.unit.Kind == workunit.KindNVTX && t.unit.Pattern.MatchString(raw) {
		tag |= tagUnit
	}
	if t.window != nil && t.window.MatchString(raw) {
		tag |= tagWindow
	}
	return tag
}

// coarse reports that tags do not depend on counters in the raw text: what the built-in patterns look for are words.
func (t *tagger) coarse() bool {
	return t.phaseMap == nil && t.unit.Kind != workunit.KindNVTX && t.window == nil
}

// settle numbers the phases that the built-in patterns found in the order in which names is: texts are tagged in no
// particular order while a trace is read.
func (t *tagger) settle(names []trace.RangeName) {
	if t.phaseMap != nil {
		return
	}
	found := t.builtin
	t.builtin = nil
	for i := range names {
		if at := names[i].Tag & tagPhase; at > 0 {
			names[i].Tag += lists.Place[uint32](&t.builtin, found[at-1]) + 1 - at
		}
	}
}

func (t *tagger) isUnit(tag uint32) bool { return tag&tagUnit != 0 }

// mapped is the phase that the phase map gives a tag, empty for none; nil without a map.
func (t *tagger) mapped() func(tag uint32) string {
	if t.phaseMap == nil {
		return nil
	}
	return func(tag uint32) string {
		if at := int(tag & tagPhase); at > 0 {
			return t.phaseMap.phases[at-1].name
		}
		return ""
	}
}

// phases are the names of the phases, by index, and where they come from.
func (t *tagger) phases() (names []string, from string) {
	if t.phaseMap == nil {
		return t.builtin, "built-in patterns"
	}
	return lists.Map(t.phaseMap.phases, func(p phase) string { return p.name }), "phase map " + t.phaseMap.Name
}
