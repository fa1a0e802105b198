package look

import (
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func (f *reportFlags) hasEvidence() bool {
	return len(f.ncu)+len(f.serverLogs)+len(f.prometheus)+len(f.evidence) > 0
}

// evidenceFiles returns the evidence files that the flags name, and expands globs that the shell left.
func (f *reportFlags) evidenceFiles() ([]analyze.Evidence, error) {
	var list []analyze.Evidence
	for _, flag := range []struct {
		name, kind string
		paths      []string
	}{
		{"ncu", analyze.EvidenceNCU, f.ncu},
		{"server-log", analyze.EvidenceServerLog, f.serverLogs},
		{"prometheus", analyze.EvidencePrometheus, f.prometheus},
		{"evidence", "", f.evidence},
	} {
		for _, p := range flag.paths {
			if p == "" {
				return nil, usage.Errorf("--%s: a file name is empty", flag.name)
			}
			paths, pattern := []string{p}, ""
			if strings.ContainsAny(p, "*?[") {
				found, err := filepath.Glob(p)
				if err != nil {
					return nil, usage.Errorf("--%s %s: %w", flag.name, p, err)
				}
				if len(found) == 0 {
					return nil, usage.Errorf("--%s %s matches no file", flag.name, p)
				}
				paths, pattern = found, p
			}
			for _, path := range paths {
				list = append(list, analyze.Evidence{Path: path, Kind: flag.kind, Pattern: pattern})
			}
		}
	}
	return list, nil
}
