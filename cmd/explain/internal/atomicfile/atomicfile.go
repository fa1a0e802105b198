// Package atomicfile writes files and folders that appear whole or not at all, so that readers never see half of one.
// It never replaces a file that explain did not write, unless the caller allows it.
package atomicfile

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Item is one file of a folder.
type Item struct {
	Name  string // below the folder
	Write func(w io.Writer) error
}

// Folder writes files into dir whole or not at all: it writes all of them into a scratch folder first, then moves them
// into place in the given order. A folder that exists keeps what explain did not write.
func Folder(ctx context.Context, dir string, files []Item) error {
	named := filepath.Clean(dir)
	fail := func(err error) error { return failed(named, err) }
	dir, node, err := target(named)
	if err != nil {
		return fail(err)
	}
	info, err := os.Stat(dir)
	exists := err == nil
	if node != nil || exists && !info.IsDir() {
		return usage.Errorf("%s is no folder; name a folder", named)
	}
	parent := filepath.Dir(dir)
	if exists {
		parent = dir // follows a link, so that the scratch folder is on the same file system
	}
	for _, f := range files { // find obstacles before anything is written
		if info, err := os.Lstat(filepath.Join(dir, f.Name)); err == nil && !info.Mode().IsRegular() {
			return usage.Errorf("%s is not a file that explain can replace: name another folder, or remove it",
				filepath.Join(named, f.Name))
		}
	}
	scratch, done, err := scratchIn(parent)
	if err != nil {
		return fail(err)
	}
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return fail(create(filepath.Join(scratch, f.Name), f.Write))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !exists {
		err := os.Rename(scratch, dir)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrExist):
			return fail(err)
		}
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f.Name)), 0o755); err != nil {
			return fail(err)
		}
	}
	return fail(moveIn(scratch, dir, files))
}

// moveIn moves files from a scratch folder to dir. After an error it restores the files that it replaced and removes
// the others.
func moveIn(scratch, dir string, files []Item) error {
	var undo []func()
	for _, f := range files {
		to, old := filepath.Join(dir, f.Name), filepath.Join(scratch, f.Name+".old")
		switch err := os.Link(to, old); { // fails on a file system without links: the old file cannot be restored
		case err == nil:
			undo = append(undo, func() { _ = os.Rename(old, to) })
		case errors.Is(err, os.ErrNotExist):
			undo = append(undo, func() { os.Remove(to) })
		}
		if err := os.Rename(filepath.Join(scratch, f.Name), to); err != nil {
			for _, back := range undo {
				back()
			}
			return err
		}
	}
	return nil
}

func create(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 64<<10) // writers of rows and JSON write a few bytes at a time
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	return errors.Join(err, f.Close())
}

// failed says of an error, if there is one, which path cannot be written.
func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

// scratchPrefix begins the names of scratch folders. A name also holds whose pids its writer's pid is one of, and that
// pid, so that the folder of a killed explain can be recognized and removed. A lock would not tell: NFS and Lustre lock
// folders on each machine for itself.
const scratchPrefix = ".explain-write-"

// scratchOf begins the names of the scratch folders of a process here.
func scratchOf(pid int) string { return scratchPrefix + place() + "-" + strconv.Itoa(pid) + "-" }

// place names the machine since its start, and the PID namespace.
var place = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	sum := sha256.Sum256(fmt.Append(nil, host, " ", string(boot), space))
	return hex.EncodeToString(sum[:8])
})

// scratchIn makes a scratch folder in parent, with the permissions of the user's umask, and removes those of killed
// writers. done removes it.
func scratchIn(parent string) (dir string, done func(), err error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", nil, err
	}
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		of, here := strings.CutPrefix(e.Name(), scratchPrefix+place()+"-")
		pid, _, _ := strings.Cut(of, "-")
		if n, err := strconv.Atoi(pid); here && err == nil && gone(n) {
			os.RemoveAll(filepath.Join(parent, e.Name()))
		}
	}
	// no name comes twice: a scratch folder that was renamed leaves its name, and done removes what has it
	dir = filepath.Join(parent, scratchOf(os.Getpid())+rand.Text())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", nil, err
	}
	return dir, func() {
		// The error that ended the writing, such as too many open files, can meet the removal too. The next explain that
		// writes here removes what is left.
		for range 3 {
			if os.RemoveAll(dir) == nil {
				return
			}
		}
	}, nil
}

// Any allows to replace any regular file: for files below a folder that is explain's own.
var Any = Over{Force: true}

// Over says which file may be replaced: one of explain's own kind, or any.
type Over struct {
	Begins string                          // beginning of such a file, ignoring blanks
	Own    func(path string) (bool, error) // asked instead of Begins if it is not nil
	Force  bool                            // any regular file
}

// Begins reports whether a file begins with a text, blanks left out. The error is of one that is there and cannot be
// read.
func Begins(path, text string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() { // opening a pipe would block
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return false, err
	}
	return text != "" && strings.HasPrefix(strings.Join(strings.Fields(string(head)), ""), strings.Join(strings.Fields(text), "")), nil
}

// Check reports, before any work, whether [File] would accept a path; an empty one is that of no file, and fine. If
// not, the error is a usage error, unless the path cannot be examined.
func Check(path string, over Over) error {
	_, _, err := over.look(path)
	return err
}

// Ready is [Check] before expensive work: it also tries to write to the folder.
func Ready(path string, over Over) error {
	to, node, err := over.look(path)
	if err != nil || node != nil {
		return err
	}
	if info, err := os.Stat(to); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	_, done, err := scratchIn(filepath.Dir(to))
	if err == nil {
		done()
	}
	return failed(path, err)
}

// look follows the links of a path to a regular file that may be replaced, to a path where nothing exists, or to an
// open node to write to.
func (o Over) look(path string) (to string, node io.WriteCloser, err error) {
	to, node, err = target(path)
	if err != nil || node != nil {
		return to, node, err
	}
	info, err := os.Stat(to)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return to, nil, nil
	case err != nil:
		return "", nil, failed(path, err)
	case info.IsDir():
		return "", nil, usage.Errorf("%s is a folder; name a file", path)
	case info.Mode()&os.ModeSocket != 0:
		return "", nil, usage.Errorf("%s is a socket; name a file or a pipe", path)
	case !info.Mode().IsRegular() || o.Force:
		return to, nil, nil
	case info.Mode().Perm()&0o200 == 0:
		return "", nil, usage.Errorf("%s is read-only: name another file, or replace it with --force", path)
	case o.Begins == "" && o.Own == nil:
		return "", nil, usage.Errorf("%s exists: name another file, or replace it with --force", path)
	case info.Size() == 0:
		return to, nil, nil
	}
	if o.Own == nil {
		o.Own = func(path string) (bool, error) { return Begins(path, o.Begins) }
	}
	switch ours, err := o.Own(to); {
	case err != nil:
		return "", nil, failed(path, err)
	case !ours:
		return "", nil, usage.Errorf("%s is there, and explain did not write it: name another file, or replace it with --force", path)
	}
	return to, nil, nil
}

// target follows the symbolic links of a path to its end, which need not exist, or to a file that explain has open,
// such as /dev/stdout.
func target(path string) (string, io.WriteCloser, error) {
	named := path
	for range 40 {
		for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
			n, err := strconv.Atoi(strings.TrimPrefix(path, dir))
			switch {
			case err != nil || !strings.HasPrefix(path, dir):
			case n == 1:
				return path, os.Stdout, nil
			case n == 2:
				return path, os.Stderr, nil
			default:
				return path, os.NewFile(uintptr(n), named), nil
			}
		}
		link, err := os.Readlink(path)
		if err != nil { // not a link
			return path, nil, nil
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", nil, failed(named, errors.New("too many symbolic links"))
}

// Stdout reports whether a path is standard output.
func Stdout(path string) bool {
	_, node, err := target(path)
	return err == nil && node == os.Stdout
}

// File writes a file. A regular file appears whole or not at all, at the end of the path's symbolic links, as a new
// file or in place of one that over allows. Devices, pipes and open files such as /dev/stdout are written to.
// Anything else is a usage error.
func File(path string, over Over, write func(io.Writer) error) error {
	return Path(path, over, func(name string) error { return create(name, write) })
}

// Path is [File] for writers that need a file name, such as a database.
func Path(path string, over Over, put func(name string) error) error {
	to, node, err := over.look(path)
	if err != nil {
		return err
	}
	fail := func(err error) error { return failed(path, err) }
	info, err := os.Stat(to)
	mode := os.FileMode(0)
	switch {
	case node != nil:
	case err == nil && !info.Mode().IsRegular():
		if node, err = open(to, info.Mode()); err != nil {
			return fail(err)
		}
	case err == nil:
		mode = info.Mode().Perm()
	}
	parent := filepath.Dir(to)
	if node != nil {
		parent = os.TempDir()
	}
	scratch, done, err := scratchIn(parent)
	if err != nil {
		return fail(err)
	}
	defer done()
	name := filepath.Join(scratch, filepath.Base(to))
	if err := put(name); err != nil {
		return fail(err)
	}
	switch {
	case node != nil:
		err = send(node, name)
	case Check(path, over) != nil: // another process created it meanwhile
		return Check(path, over)
	case mode != 0:
		err = errors.Join(os.Chmod(name, mode), os.Rename(name, to))
	default:
		err = os.Rename(name, to)
	}
	return fail(err)
}

// readerLimit is how long to wait for a reader of a pipe.
const readerLimit = time.Minute

// open opens a device or a pipe for writing.
func open(path string, mode os.FileMode) (io.WriteCloser, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		f, err := os.OpenFile(path, os.O_WRONLY|nonblock, 0)
		if mode&os.ModeNamedPipe == 0 || !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		if time.Since(began) > readerLimit {
			return nil, fmt.Errorf("nobody has read this pipe for %s: start its reader first", readerLimit)
		}
	}
}

// send copies the content of a file to a node.
func send(node io.WriteCloser, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(node, f)
	if node != os.Stdout && node != os.Stderr {
		err = errors.Join(err, node.Close())
	}
	return err
}
