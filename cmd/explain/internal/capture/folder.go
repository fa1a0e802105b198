package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Folder is an output folder. Captures are made in a scratch folder beside it, .explain-NAME, which is also the claim:
// only the process that has it writes NAME. Each capture moves into its place when it is whole. What fails after
// something was recorded is kept in NAME.failed, from where it can be continued.
type Folder struct {
	Stage string // where to write
	Notes []string
	out   string
	force bool
	old   string // what --force replaces, until the folder is done; empty: nothing
	begun bool   // out holds a capture of this call
}

// Errors of an output folder that cannot be written.
var (
	ErrExists = errors.New("exists and is not empty")
	ErrTaken  = errors.New("is being written by another explain capture")
	ErrAlien  = errors.New("holds what explain did not write")
)

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

// NewFolder claims an output folder. One that exists must be empty, or hold what explain wrote and nothing else, and
// force be given. Scratch folders that captures left there whose explain is dead are moved to NAME.failed, where they
// hold a recording, and else removed; Notes says so.
func NewFolder(out string, force bool) (*Folder, error) {
	out = filepath.Clean(out)
	for range 40 { // what a link leads to is written, and the link stays
		link, err := os.Readlink(out)
		if err != nil {
			break
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(out), link)
		}
		out = link
	}
	entries, err := os.ReadDir(out)
	switch {
	case errors.Is(err, syscall.ENOTDIR) && there(out):
		return nil, fmt.Errorf("%s %w: it is no folder; name another with --out", out, ErrAlien)
	case err == nil && len(entries) > 0 && !force:
		return nil, fmt.Errorf("%s %w: name another with --out, or replace it with --force", out, ErrExists)
	case err == nil && len(entries) > 0:
		if alien := alienIn(out); alien != "" {
			return nil, fmt.Errorf("%s %w (%s), and --force replaces captures alone: name another with --out, or remove it yourself",
				out, ErrAlien, alien)
		}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot write %s: %w", out, err)
	}
	parent := filepath.Dir(out)
	fail := func(err error) (*Folder, error) {
		return nil, DiskFull(parent, fmt.Errorf("cannot write %s: %w", out, err))
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fail(err)
	}
	f := &Folder{Stage: filepath.Join(parent, scratchPrefix+filepath.Base(out)), out: out, force: force}
	stale, _ := filepath.Glob(filepath.Join(quoteGlob(parent), scratchPrefix+"*"))
	for _, stage := range stale {
		if o, ok := ownerOf(stage); ok && !o.mayLive() {
			if note := rescue(stage); note != "" {
				f.Notes = append(f.Notes, note)
			}
		}
	}
	claim, err := os.MkdirTemp(parent, scratchPrefix)
	if err != nil {
		return fail(err)
	}
	err = errors.Join(os.Chmod(claim, 0o755), thisProcess().write(claim))
	if err == nil {
		err = os.Rename(claim, f.Stage) // fails where it is there, since it is not empty then
	}
	if err != nil {
		os.RemoveAll(claim)
		if o, ok := ownerOf(f.Stage); ok {
			return nil, fmt.Errorf("%s %w (pid %d on %s): wait for it, or name another with --out",
				out, ErrTaken, o.PID, o.Host)
		}
		return fail(err)
	}
	return f, nil
}

// Scratch folders begin with the one; what --force replaces ends with the other.
const (
	scratchPrefix = ".explain-"
	oldSuffix     = "-old"
)

// rescue gives up the scratch folder of a capture whose explain is dead; note says where its recording is, if it holds
// one.
func rescue(stage string) (note string) {
	o, _ := ownerOf(stage)
	lost := &Folder{Stage: stage, out: filepath.Join(filepath.Dir(stage), strings.TrimPrefix(filepath.Base(stage), scratchPrefix))}
	if _, owned := ownerOf(stage + oldSuffix); !owned && there(stage+oldSuffix) {
		lost.old = stage + oldSuffix
	}
	if kept, resumable := lost.Fail(errors.New("explain was killed")); resumable {
		note = fmt.Sprintf("the capture of %s was killed (pid %d); continue it with: explain capture resume %s", lost.out, o.PID, kept)
	}
	return note
}

// quoteGlob is a path as a pattern that matches itself alone.
func quoteGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Keep moves one capture of several into its place, as soon as it is whole.
func (f *Folder) Keep(sub string) error {
	if err := f.begin(); err != nil {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return f.fail(err)
	}
	if err := os.Rename(filepath.Join(f.Stage, sub), filepath.Join(f.out, sub)); err != nil {
		return f.fail(err)
	}
	return nil
}

// begin moves what is replaced out of the way, once.
func (f *Folder) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	if !f.force {
		if err := os.Remove(f.out); err != nil && !errors.Is(err, os.ErrNotExist) { // it was empty
			return f.fail(err)
		}
		return nil
	}
	old := f.Stage + oldSuffix
	switch err := os.Rename(f.out, old); {
	case err == nil:
		f.old = old
	case !errors.Is(err, os.ErrNotExist):
		return f.fail(err)
	}
	return nil
}

func (f *Folder) fail(err error) error { return fmt.Errorf("cannot write %s: %w", f.out, err) }

// Done ends the work: if there is one capture it moves into its place, and the claim is given up.
func (f *Folder) Done() error {
	if !f.begun {
		if err := f.begin(); err != nil {
			return err
		}
		if err := Finished(f.Stage); err != nil {
			return f.fail(err)
		}
		if err := os.Rename(f.Stage, f.out); err != nil {
			return f.fail(err)
		}
	} else if err := os.RemoveAll(f.Stage); err != nil {
		return f.fail(err)
	}
	if f.old == "" {
		return nil
	}
	return os.RemoveAll(f.old)
}

// Fail gives up the claim after an error. If something was recorded, all of the scratch folder is kept in
// OUT.failed, with what went wrong in status.json, and resumable is true; else the logs of the children, where there
// are some. What completed before stays in OUT, and so does what --force was to replace if nothing did. kept is empty
// if nothing was kept.
func (f *Folder) Fail(why error) (kept string, resumable bool) {
	if f.old != "" && !there(f.out) {
		_ = os.Rename(f.old, f.out)
	} else if f.old != "" {
		defer os.RemoveAll(f.old)
	}
	resumable = len(Recordings(f.Stage)) > 0
	if !resumable && !onlyLogs(f.Stage) {
		os.RemoveAll(f.Stage)
		return "", false
	}
	if resumable { // on a full disk the recording is worth more than the words about it
		s, _ := ReadStatus(f.Stage)
		s.Out, s.Error = filepath.Base(f.out), RedactText(why.Error())
		_ = s.Write(f.Stage)
	}
	kept = failedPlace(f.out)
	if err := os.Rename(f.Stage, kept); err != nil {
		kept = f.Stage
	}
	_ = os.Remove(filepath.Join(kept, ownerFile))
	return kept, resumable
}

// failedPlace is OUT.failed, replaced where it holds logs alone; OUT.failed-2 and so on where it holds a recording,
// or what explain did not write.
func failedPlace(out string) string {
	for n := 1; ; n++ {
		place := out + ".failed"
		if n > 1 {
			place += "-" + strconv.Itoa(n)
		}
		if _, err := os.Lstat(place); errors.Is(err, os.ErrNotExist) || n == 100 {
			return place
		}
		if len(Recordings(place)) == 0 && alienIn(place) == "" && os.RemoveAll(place) == nil {
			return place
		}
	}
}

// onlyLogs removes everything but logs from a folder, and reports whether there were any.
func onlyLogs(dir string) bool {
	found := false
	for _, sub := range append(captures(dir), ".") {
		at := filepath.Join(dir, sub)
		entries, err := os.ReadDir(at)
		if err != nil {
			continue
		}
		here := 0
		for _, e := range entries {
			if logs, _ := filepath.Glob(filepath.Join(quoteGlob(at), e.Name(), "*.log")); e.Name() == "logs" && len(logs) > 0 {
				here++
				continue
			}
			if sub == "." && captureName(e.Name()) {
				continue
			}
			os.RemoveAll(filepath.Join(at, e.Name()))
		}
		found = found || here > 0
		if here == 0 && sub != "." {
			os.RemoveAll(at)
		}
	}
	return found
}

// captures are the names of the folders of single captures in an output folder: run-2, base-1.
func captures(dir string) (subs []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && captureName(e.Name()) {
			subs = append(subs, e.Name())
		}
	}
	return subs
}

func captureName(name string) bool {
	side, number, ok := strings.Cut(name, "-")
	_, err := strconv.ParseUint(number, 10, 32)
	return ok && err == nil && slices.Contains([]string{"run", "base", "head"}, side)
}

// Recordings are the captures in a folder that hold a recording: "." for the folder itself, or run-2, base-1.
func Recordings(dir string) (subs []string) {
	for _, sub := range append(captures(dir), ".") {
		at := filepath.Join(dir, sub)
		report, stream := captured(at)
		if info, err := os.Stat(base(at) + ".sqlite"); report+stream != "" || err == nil && info.Size() > 0 {
			subs = append(subs, sub)
		}
	}
	return subs
}

// written are the names that explain gives to files and folders in a capture.
var written = []string{"logs", "tables", "ncu", "evidence", "comparison", overheadDir, OverheadFile, "metadata.txt", "env.json", "inputs.yaml",
	"config.yaml", "cmd.txt", "report.json", "report.md", "report.html", "summary.json", "kernels.md", "operators.md",
	"stakeholder_summary.md", "step.perfetto.json", "ncu_summary.json", "noise.json", statusFile}

// alienIn names something in a folder that explain did not write; empty if it wrote all of it. A capture is known by
// logs/children.json, which no other program writes.
func alienIn(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "what cannot be read"
	}
	ours := func(at string) bool {
		_, err := os.Stat(filepath.Join(at, "logs", "children.json"))
		return err == nil
	}
	made := ours(dir)
	for _, e := range entries {
		name := e.Name()
		switch {
		case captureName(name) && e.IsDir():
			if inside := alienIn(filepath.Join(dir, name)); inside != "" {
				return filepath.Join(name, inside)
			}
			made = true
		case !slices.Contains(written, name) && !strings.HasPrefix(name, "trace."):
			return name
		}
	}
	if !made && len(entries) > 0 {
		return "no capture"
	}
	return ""
}

// Status is what status.json says of a capture that has not come to its end, and what it takes to bring it there.
type Status struct {
	Error    string `json:"error"`
	Out      string `json:"out"` // the name of the folder that it was to be
	NoReport bool   `json:"no_report"`
	Unit     string `json:"unit"`
	Nsys     string `json:"nsys,omitempty"` // as it was named; empty: $NSYS, or the one on PATH
}

// OverheadFile is where a capture says what profiling cost, for reports that are made later.
const OverheadFile = "overhead.json"

const statusFile = "status.json"

// Write leaves the status in a folder. After an error the one that was there stays: on a full disk it is what a
// capture is continued by.
func (s *Status) Write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, statusFile)
	err = os.WriteFile(path+".new", append(b, '\n'), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
	}
	return err
}

// ReadStatus reads the status in a folder; the zero value if there is none.
func ReadStatus(dir string) (*Status, error) {
	s := new(Status)
	b, err := os.ReadFile(filepath.Join(dir, statusFile))
	if err == nil {
		err = json.Unmarshal(b, s)
	}
	return s, err
}

// Finished removes from a folder what says that its capture has not come to its end.
func Finished(dir string) error {
	for _, name := range []string{ownerFile, statusFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
