package diffdoc

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/diff/comparison"
)

// The elements of a JUnit file, as CI systems read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Failure *junitWhy `xml:"failure"`
		Error   *junitWhy `xml:"error"`
		Skipped *junitWhy `xml:"skipped"`
		Out     string    `xml:"system-out,omitempty"`
	}
	junitWhy struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
	}
)

// WriteJUnit writes a test case for the verdict and one for each gate. A gate that fails is a failure, one that is
// inconclusive is skipped with its reason, and one that warns or passes has its reason as output. The verdict's test
// case fails if the verdict is fail, and is an error if it is inconclusive.
func WriteJUnit(w io.Writer, c *comparison.Comparison) error {
	s := junitSuite{Name: "explain diff", Properties: []junitProperty{
		{"verdict", string(c.Verdict)}, {"cause", render.Visible(c.Cause)},
	}}
	s.verdict(c.Verdict, OneLine(c))
	for _, g := range c.Gates {
		name := report.MetricKey(g.Metric, g.Labels)
		if g.Threshold != "" {
			name += " " + g.Threshold
		}
		t := junitCase{Class: render.Visible("explain." + g.Rule), Name: render.Visible(name)}
		reason := render.Visible(g.Reason)
		switch g.Verdict {
		case comparison.Fail, comparison.Error:
			t.Failure = &junitWhy{Message: reason, Type: string(g.Class)}
			if g.Class == comparison.Unsettled { // a budget judges no change
				t.Failure.Type = string(g.Verdict)
			}
			s.Failures++
		case comparison.Inconclusive:
			t.Skipped = &junitWhy{Message: reason}
			s.Skipped++
		case comparison.Warn:
			t.Out = "warn: " + reason
		case comparison.Pass:
			t.Out = reason
		}
		s.Cases = append(s.Cases, t)
	}
	return s.write(w)
}

// WriteJUnitError writes a single test case for a run that judged nothing, with text as the reason.
func WriteJUnitError(w io.Writer, v comparison.Verdict, text string) error {
	s := junitSuite{Name: "explain diff", Properties: []junitProperty{{"verdict", string(v)}}}
	s.verdict(v, text)
	return s.write(w)
}

func (s *junitSuite) verdict(v comparison.Verdict, text string) {
	t := junitCase{Class: "explain", Name: "verdict"}
	why := &junitWhy{Message: render.Visible(text), Type: string(v)}
	switch v {
	case comparison.Fail:
		t.Failure = why
		s.Failures++
	case comparison.Inconclusive, comparison.Error:
		t.Error = why
		s.Errors++
	case comparison.Pass, comparison.Warn:
		t.Out = string(v) + ": " + why.Message
	}
	s.Cases = append(s.Cases, t)
}

func (s junitSuite) write(w io.Writer) error {
	s.Tests = len(s.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{s}}); err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}
