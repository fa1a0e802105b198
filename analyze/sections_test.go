package analyze

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each page says what its section emits, and nothing else: every metric and every CSV file that it names exists, and it
// names every metric and file that the section declares. Files of evidence have names too: those in testdata/evidence. `a.b*` stands for all metrics that begin with a.b.
func TestPagesAreTrue(t *testing.T) {
	metrics, files := map[string]bool{}, map[string]bool{}
	prefixes := map[string]bool{}
	for _, s := range sections {
		for _, m := range s.Metrics {
			metrics[m.ID] = true
			group, _, _ := strings.Cut(m.ID, ".")
			prefixes[group] = true
		}
		for _, table := range s.Tables {
			files[table.File] = true
		}
	}
	given := evidenceNames(t)
	word := regexp.MustCompile(`(?:[a-z_][a-z0-9_]*\.)+[a-z0-9_*]+`)
	for _, s := range sections {
		page, err := SectionPage(s.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		named := map[string]bool{}
		for _, w := range word.FindAllString(page, -1) {
			w = strings.TrimRight(w, "._")
			group, _, _ := strings.Cut(w, ".")
			stem, all := strings.CutSuffix(w, "*")
			switch {
			case strings.HasSuffix(w, ".json"):
			case strings.HasSuffix(w, ".csv"):
				if !files[w] && !given[w] {
					t.Errorf("%s.md: no section writes %s", s.ID, w)
				}
			case all:
				for m := range metrics {
					named[m] = named[m] || strings.HasPrefix(m, stem)
				}
				continue
			case prefixes[group] && !metrics[w]:
				t.Errorf("%s.md: there is no metric %s", s.ID, w)
			}
			named[w] = true
		}
		for _, m := range s.Metrics {
			if !named[m.ID] {
				t.Errorf("%s.md does not name %s", s.ID, m.ID)
			}
		}
		for _, table := range s.Tables {
			if table.File != "" && !named[table.File] {
				t.Errorf("%s.md does not name %s", s.ID, table.File)
			}
		}
	}
}

// No two tables write the same file, and no two sections have the same id.
func TestNoTwoAreTheSame(t *testing.T) {
	files, ids := map[string]string{}, map[string]bool{}
	for _, s := range sections {
		if ids[s.ID] {
			t.Errorf("two sections are called %s", s.ID)
		}
		ids[s.ID] = true
		for _, table := range s.Tables {
			if other := files[table.File]; table.File != "" && other != "" {
				t.Errorf("%s and %s both write %s", other, s.ID, table.File)
			}
			files[table.File] = s.ID
		}
	}
}

func evidenceNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	err := filepath.WalkDir("../testdata/evidence", func(_ string, d os.DirEntry, err error) error {
		if err == nil {
			names[d.Name()] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Each finding that a section declares is explained on its page, as **id**, and each that a page explains is declared.
func TestPagesExplainFindings(t *testing.T) {
	explained := regexp.MustCompile(`(?m)^- \*\*([a-z][a-z0-9_]+)\*\*`)
	for _, s := range sections {
		page, err := SectionPage(s.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		declared := map[string]bool{}
		for _, d := range s.Findings {
			declared[d.ID] = true
			if !strings.Contains(page, "**"+d.ID+"**") || d.Title == "" {
				t.Errorf("%s.md does not explain the finding %s, or it has no title", s.ID, d.ID)
			}
		}
		_, last, _ := strings.Cut(page, "indings\n") // the headings
		last, _, _ = strings.Cut(last, "\n## ")
		for _, m := range explained.FindAllStringSubmatch(last, -1) {
			if !declared[m[1]] {
				t.Errorf("%s.md explains %s, which the section does not declare", s.ID, m[1])
			}
		}
	}
}

// Severity follows from what a finding is worth, except that failures are high: pages state no other.
func TestPagesStateSeverities(t *testing.T) {
	states := regexp.MustCompile(
		`\((?:low|medium|high)\b[^)]*\)|\b(?:low|medium|high) (?:from|if)\b|at most (?:low|medium)`)
	someFail := map[string]bool{"server_errors": true, "failed_responses": true} // not all of the kind are failures
	for _, s := range sections {
		page, err := SectionPage(s.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Findings {
			want := ""
			if d.Failure {
				want = "(high)"
			} else if someFail[d.ID] {
				want = "high if"
			}
			_, text, _ := strings.Cut(page, "**"+d.ID+"**")
			text, _, _ = strings.Cut(text, "\n-")
			text, _, _ = strings.Cut(text, "\n\n")
			if got := strings.Join(states.FindAllString(text, -1), ", "); got != want {
				t.Errorf("%s.md: severity of %s: %q, want %q", s.ID, d.ID, got, want)
			}
		}
	}
}

// Each metric is looked up by some test of a section, where its value was worked out by hand.
func TestEveryMetricIsTested(t *testing.T) {
	files, err := sectionFiles()
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(b)
	}
	for _, s := range sections {
		for _, m := range s.Metrics {
			if !strings.Contains(tests.String(), `"`+m.ID+`"`) {
				t.Errorf("section %s: no test asks for %s", s.ID, m.ID)
			}
		}
	}
}

// sectionFiles are the Go files of the families.
func sectionFiles() ([]string, error) {
	inner, err := filepath.Glob(filepath.FromSlash("internal/section/*/*.go"))
	if err != nil {
		return nil, err
	}
	outer, err := filepath.Glob(filepath.FromSlash("compat/*.go"))
	return append(inner, outer...), err
}
