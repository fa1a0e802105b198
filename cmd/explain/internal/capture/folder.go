package capture

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Folder is an output folder NAME. Captures are made in a scratch folder beside it, .explain-NAME, which also serves as
// a lock: only its owner writes NAME. Each complete capture is moved into place. If a capture fails after recording,
// its scratch folder is kept as NAME.failed, and can be resumed.
type Folder struct {
	Stage string // scratch folder to write to
	Notes []string
	out   string
	force bool
	old   string // replaced by --force, kept until the folder is done; empty: nothing
	begun bool   // this call moved a capture to out
}

func there(path string) bool { _, err := os.Lstat(path); return err == nil }

// NewFolder claims an output folder. An existing one must be empty, or force must be set and explain must have written
// all of it. It also cleans up scratch folders there whose explain is dead: those with a recording are moved to
// NAME.failed, others are removed; Notes says so.
func NewFolder(out string, force bool) (*Folder, error) {
	out = filepath.Clean(out)
	for range 40 { // follow links, and keep them
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
		return nil, usage.Errorf("%s holds files that explain did not write: it is not a folder; name another with --out", out)
	case err == nil && len(entries) > 0 && !force:
		return nil, usage.Errorf("%s exists and is not empty: name another with --out, or replace it with --force", out)
	case err == nil && len(entries) > 0:
		if alien := alienIn(out); alien != "" {
			return nil, usage.Errorf("%s holds files that explain did not write (%s), and --force replaces captures alone: "+
				"name another with --out, or remove it yourself", out, alien)
		}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("cannot write %s: %w", out, err)
	}
	parent := filepath.Dir(out)
	f := &Folder{Stage: filepath.Join(parent, scratchPrefix+filepath.Base(out)), out: out, force: force}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, f.fail(err)
	}
	defer lockFolder(parent)() // against others who rescue the same, or claim what is being rescued
	stale, _ := fs.Glob(os.DirFS(parent), scratchPrefix+"*")
	for _, name := range stale {
		stage := filepath.Join(parent, name)
		if o, ok := ownerOf(stage); ok && !o.mayLive() {
			if note := rescue(stage); note != "" {
				f.Notes = append(f.Notes, note)
			}
		}
	}
	claim := filepath.Join(parent, scratchPrefix+rand.Text())
	if err := os.Mkdir(claim, 0o755); err != nil {
		return nil, f.fail(err)
	}
	err = thisProcess().write(claim)
	if err == nil {
		err = os.Rename(claim, f.Stage) // fails if another capture has it, since it is not empty then
	}
	if err != nil {
		os.RemoveAll(claim)
		if o, ok := ownerOf(f.Stage); ok {
			return nil, usage.Errorf("%s is being written by another explain capture (pid %d on %s): wait for it, or name another with --out; "+
				"if it is gone, continue or remove %s", out, o.PID, o.Host, f.Stage)
		}
		return nil, f.fail(err)
	}
	return f, nil
}

// Scratch folders begin with scratchPrefix; what --force replaces ends with oldSuffix.
const (
	scratchPrefix = ".explain-"
	oldSuffix     = "-old"
)

// rescue releases the scratch folder of a capture whose explain is dead; note says where its recording is, if there is
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

// Keep moves one of several captures into its place once it is complete.
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

// begin moves the folder to replace out of the way, once.
func (f *Folder) begin() error {
	if f.begun {
		return nil
	}
	f.begun = true
	if !f.force {
		return RemoveEmpty(f.out)
	}
	old := f.Stage + oldSuffix
	switch err := os.Rename(f.out, old); {
	case err == nil:
		if alien := alienIn(old); alien != "" { // since the folder was claimed
			return errors.Join(fmt.Errorf("%s holds files that explain did not write (%s)", f.out, alien), os.Rename(old, f.out))
		}
		f.old = old
	case !errors.Is(err, os.ErrNotExist):
		return f.fail(err)
	}
	return nil
}

// RemoveEmpty removes an empty folder and nothing else, to make place for a capture. It may not exist.
func RemoveEmpty(dir string) error {
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot write %s: it was empty or missing before, and is no more: %w", dir, err)
	}
	return nil
}

func (f *Folder) fail(err error) error {
	return DiskFull(filepath.Dir(f.out), fmt.Errorf("cannot write %s: %w", f.out, err))
}

// Done ends the work: it moves a single capture into its place, and releases the claim.
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
	return os.RemoveAll(f.old) // which does nothing without a name
}

// Fail releases the claim after an error. If something was recorded, it keeps the scratch folder as OUT.failed, with
// the error in status.json, and resumable is true; else it keeps only the logs of the children, if any. Captures that
// completed before stay in OUT; if there are none, OUT gets back what --force was to replace. kept is empty if nothing
// was kept. A folder that cannot be listed may hold a recording, and is kept.
func (f *Folder) Fail(why error) (kept string, resumable bool) {
	if f.old != "" && !there(f.out) {
		_ = os.Rename(f.old, f.out)
	} else if f.old != "" {
		defer os.RemoveAll(f.old)
	}
	_, err := os.ReadDir(f.Stage)
	resumable = err != nil && !errors.Is(err, fs.ErrNotExist) || len(Recordings(f.Stage)) > 0
	if !resumable && !onlyLogs(f.Stage) {
		os.RemoveAll(f.Stage)
		return "", false
	}
	if resumable { // best effort: on a full disk the recording matters more
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

// failedPlace returns OUT.failed, OUT.failed-2 and so on: the first that does not exist, or that it could remove
// because it held neither a recording nor files that explain did not write.
func failedPlace(out string) string {
	for n := 1; ; n++ {
		place := out + ".failed"
		if n > 1 {
			place += "-" + strconv.Itoa(n)
		}
		if !there(place) || n == 100 {
			return place
		}
		if len(Recordings(place)) == 0 && alienIn(place) == "" && os.RemoveAll(place) == nil {
			return place
		}
	}
}

// onlyLogs removes everything except logs from a folder, and reports whether there were any.
func onlyLogs(dir string) bool {
	found := false
	for _, sub := range append(captures(dir), ".") {
		at := filepath.Join(dir, sub)
		entries, err := os.ReadDir(at)
		if err != nil {
			continue
		}
		logs, _ := fs.Glob(os.DirFS(at), "logs/*.log")
		for _, e := range entries {
			if keep := e.Name() == "logs" && len(logs) > 0 || sub == "." && captureName().MatchString(e.Name()); !keep {
				os.RemoveAll(filepath.Join(at, e.Name()))
			}
		}
		found = found || len(logs) > 0
		if len(logs) == 0 && sub != "." {
			os.RemoveAll(at)
		}
	}
	return found
}

// captures returns the names of the folders of single captures in an output folder: run-2, base-1.
func captures(dir string) (subs []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && captureName().MatchString(e.Name()) {
			subs = append(subs, e.Name())
		}
	}
	return subs
}

// captureName matches the name of such a folder.
var captureName = pattern.New(`^(run|base|head)-[0-9]+$`)

// Recordings returns the captures in a folder that hold a recording: "." for the folder itself, or run-2, base-1.
func Recordings(dir string) []string {
	return lists.Filter(append(captures(dir), "."), func(sub string) bool {
		at := filepath.Join(dir, sub)
		return recorded(at) || filled(base(at)+".sqlite")
	})
}

// written are the names that explain gives to files and folders in a capture.
var written = []string{"logs", "tables", "ncu", "evidence", "comparison", overheadDir, OverheadFile, "metadata.txt", "env.json", "inputs.yaml",
	"config.yaml", "cmd.txt", "report.json", "report.md", "report.html", "summary.json", "kernels.md", "operators.md",
	"stakeholder_summary.md", "step.perfetto.json", "ncu_summary.json", "noise.json", statusFile}

// alienIn names something in a folder that explain did not write; empty if it wrote all of it. A capture is recognized
// by logs/children.json, which no other program writes.
func alienIn(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "what cannot be read"
	}
	made := there(filepath.Join(dir, "logs", recordsFile))
	for _, e := range entries {
		name := e.Name()
		switch {
		case captureName().MatchString(name) && e.IsDir():
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

// Status is the content of status.json, for an unfinished capture: its error, and what resuming it needs.
type Status struct {
	Error    string `json:"error"`
	Out      string `json:"out"` // name of the final folder
	NoReport bool   `json:"no_report"`
	Unit     string `json:"unit"`
	Nsys     string `json:"nsys,omitempty"` // as the user named it; empty: $NSYS, or the one on PATH
	// files of the report, by absolute path; empty: none
	PhaseMap  string `json:"phase_map,omitempty"`
	KernelMap string `json:"kernel_map,omitempty"`
}

// OverheadFile stores what profiling cost, for reports that are made later.
const OverheadFile = "overhead.json"

const statusFile = "status.json"

// Write writes the status into a folder. After an error the previous one stays: on a full disk, resuming needs it.
func (s *Status) Write(dir string) error {
	path := filepath.Join(dir, statusFile)
	err := writeJSON(path+".new", s, 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		os.Remove(path + ".new")
	}
	return err
}

// ReadStatus reads the status in a folder. Without one it returns the zero value and an error.
func ReadStatus(dir string) (*Status, error) {
	s := new(Status)
	b, err := os.ReadFile(filepath.Join(dir, statusFile))
	if err == nil {
		err = json.Unmarshal(b, s)
	}
	return s, err
}

// Finished removes the files that mark an unfinished capture from a folder.
func Finished(dir string) error {
	for _, name := range []string{ownerFile, statusFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
