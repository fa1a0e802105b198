package gitfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Commit is one commit of a log.
type Commit struct {
	SHA, Subject string
	Files        []string // that the commit touches, from the root of the repository
}

// MaxLog bounds the commits of a log.
const MaxLog = 200

// Log lists the commits behind from up to to, the newest last, at most MaxLog of them. dir lies in the checkout.
func Log(ctx context.Context, dir, from, to string) ([]Commit, error) {
	return log(ctx, dir, from, to, "--name-only", fmt.Sprintf("--max-count=%d", MaxLog))
}

// FirstParents lists all commits behind from up to to, the newest last, without their files. Of a merge it follows the
// first parent. It is empty if to is not behind from.
func FirstParents(ctx context.Context, dir, from, to string) ([]Commit, error) {
	if _, err := run(ctx, dir, "merge-base", "--is-ancestor", from, to); saysNo(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("it is unknown whether %s is behind %s: %w", to, from, err)
	}
	return log(ctx, dir, from, to, "--first-parent")
}

func log(ctx context.Context, dir, from, to string, args ...string) ([]Commit, error) {
	for _, ref := range []string{from, to} {
		if !regexp.MustCompile(`^[0-9a-f]{7,64}$`).MatchString(ref) {
			return nil, fmt.Errorf("%q is not a commit", ref)
		}
	}
	args = append([]string{"log", "--reverse", "--format=%x01%H%x02%s%x02", "-z"}, args...)
	out, err := run(ctx, dir, append(args, from+".."+to)...)
	if err != nil {
		return nil, err
	}
	var list []Commit
	for entry := range strings.SplitSeq(string(out), "\x01") {
		sha, rest, ok := strings.Cut(entry, "\x02")
		if !ok {
			continue
		}
		subject, files, _ := strings.Cut(rest, "\x02")
		c := Commit{SHA: sha, Subject: subject}
		for f := range strings.SplitSeq(files, "\x00") {
			if f = strings.Trim(f, "\n"); f != "" {
				c.Files = append(c.Files, f)
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// Owners says who owns files, by the text of a CODEOWNERS file: the owners of the last pattern that matches each file,
// each owner once, in order of appearance.
func Owners(codeowners string, files []string) []string {
	type rule struct {
		match  *regexp.Regexp
		owners []string
	}
	var rules []rule
	for line := range strings.SplitSeq(codeowners, "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "[") { // a section heading of GitLab
			continue
		}
		rules = append(rules, rule{pattern(fields[0]), fields[1:]})
	}
	var list []string
	for _, f := range files {
		for _, r := range slices.Backward(rules) {
			if r.match.MatchString(f) {
				for _, o := range r.owners {
					lists.Place[int32](&list, o)
				}
				break
			}
		}
	}
	return list
}

// pattern is a line of CODEOWNERS as an expression: a name without a slash before its end matches at any depth, and a
// pattern that matches a folder matches all below it.
func pattern(p string) *regexp.Regexp {
	anchored := strings.Contains(strings.TrimSuffix(p, "/"), "/")
	folder := strings.HasSuffix(p, "/")
	p = strings.Trim(p, "/")
	start, end := "^(.*/)?", "(/.*)?$"
	if anchored {
		start = "^"
	}
	switch {
	case folder:
		end = "/.*$"
	case strings.HasSuffix(p, "/*"): // docs/* is the files of that folder alone
		end = "$"
	}
	globs := strings.NewReplacer(`\*\*/`, "(.*/)?", `\*\*`, ".*", `\*`, "[^/]*", `\?`, "[^/]")
	re, err := regexp.Compile(start + globs.Replace(regexp.QuoteMeta(p)) + end)
	if err != nil { // a name with bytes that are not UTF-8
		return regexp.MustCompile(`^\b$`)
	}
	return re
}

// Tracked reports whether git tracks the file at path, so that a change of the code can change it. A file of a checkout
// counts as tracked if git fails.
func Tracked(ctx context.Context, path string) bool {
	dir, name := filepath.Split(filepath.Clean(path))
	_, err := run(ctx, filepath.Clean(dir), "ls-files", "--error-unmatch", "--", name)
	if err == nil || saysNo(err) {
		return err == nil
	}
	if _, err := os.Stat(path); err != nil {
		return false // nothing is read from it
	}
	_, _, err = checkoutOf(ctx, path)
	return err == nil
}
