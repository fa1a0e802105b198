package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unplain are turns of speech that readers of help, findings, errors and pages stumbled over, and what says the same.
var unplain = []struct {
	turn    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\bis none of\b`), "is not one of"},
	{regexp.MustCompile(`\b[Mm]end(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`\b(hold|holds|held)( [^. ]+){0,3} against\b`), "compare with"},
	{regexp.MustCompile(`\btold (by|of)\b`), "known from, reported"},
	{regexp.MustCompile(`\b(names? nobody|nobody (late|is named|was late))\b`), "no rank"},
	{regexp.MustCompile(`\blets? go of\b`), "release"},
	{regexp.MustCompile(`\blest\b`), "so that … not"},
	{regexp.MustCompile(`\b(to speak of|has some|whereof|thereof|aught|naught)\b`), "a plain word"},
	{regexp.MustCompile(`\bbelieves? no\b`), "ignores"},
	{regexp.MustCompile(`\bdoors?\b`), "command, entry"},
}

// unplainComments are those of comments alone: "where" for "if", and people where a program or a field is meant.
var unplainComments = []struct {
	turn    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(nil|null|empty|unknown|false|absent|none|None|not ok) where\b`), "if"},
	{regexp.MustCompile(`[.;] Where |; where [^tf]`), "if"},
	{regexp.MustCompile(`\b[Ww]hoever\b`), "the process, the reader"},
}

// TestWordsArePlain: no text that people read has a turn of speech of the list: strings and comments of the program,
// pages, README.
func TestWordsArePlain(t *testing.T) {
	t.Parallel()
	read := 0
	look := func(place, text string) {
		read++
		text = strings.Join(strings.Fields(text), " ")
		for _, u := range unplain {
			if m := u.turn.FindString(text); m != "" {
				t.Errorf("%s: %q (%s) in %.160q", place, m, u.instead, text)
			}
		}
	}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case entry.IsDir() && (name == ".git" || name == "testdata" || name == "serving" || strings.HasSuffix(name, "test")):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(path)
			look(path, string(text))
			return err
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, c := range file.Comments {
			place, text := files.Position(c.Pos()).String(), strings.Join(strings.Fields(c.Text()), " ")
			look(place, text)
			for _, u := range unplainComments {
				if m := u.turn.FindString(text); m != "" {
					t.Errorf("%s: %q (%s) in the comment %.160q", place, m, u.instead, text)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
					look(files.Position(lit.Pos()).String(), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 15000 {
		t.Errorf("only %d texts were read", read)
	}
	for _, wrong := range []string{"level is none of error", "mend the server", "held against the floor", "is told by one"} {
		found := false
		for _, u := range unplain {
			found = found || u.turn.MatchString(wrong)
		}
		if !found {
			t.Errorf("%q is let through", wrong)
		}
	}
}
