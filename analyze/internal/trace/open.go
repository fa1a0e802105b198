package trace

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// Options of Open.
type Options struct {
	// Tag classifies raw NVTX text; ranges with equal canonical text but different tags stay apart. May be nil. Its
	// calls do not overlap, and come in no particular order.
	Tag func(text string) uint32
	// CoarseTag says that the tag does not depend on the counters that PyTorch's emit_nvtx puts into names (seq,
	// op_id), so that Tag need not be asked for texts that differ in nothing else.
	CoarseTag bool
	// MaxMemory is how many bytes the process should hold at most. A capture that would not fit keeps its columns in a
	// temporary file. 0 means no bound.
	MaxMemory int64
	// Progress is told what is going on: of the stages "read" and "unpack" the bytes done so far, and at their end once
	// more as "read: done" and "unpack: done"; of "read TABLE" the rows. May be nil; it is called from several
	// goroutines.
	Progress func(stage string, done int64)
	// Nsys is the nsys program used to export .nsys-rep files. Empty: $NSYS, else nsys on PATH.
	Nsys string
	// Getenv reads the environment. Nil: os.Getenv.
	Getenv func(string) string
}

func (o *Options) progress(stage string, done int64) {
	if o.Progress != nil {
		o.Progress(stage, done)
	}
}

// Open loads the capture in path: an Nsight Systems SQLite export, the same compressed with gzip or zstd, or a report
// (.nsys-rep, .qdrep) where nsys is installed. The file is never changed and nothing is created beside it; what needs a
// scratch copy gets one in the temporary folder, removed by Close. A file that cannot be analysed is an *InputError.
func Open(ctx context.Context, path string, opt Options) (*Trace, error) {
	in := newInput(ctx, path, &opt)
	defer in.cleanup()
	reference, err := in.open()
	if err != nil {
		return nil, err
	}
	var src source = reference
	if in.alone {
		if fast, err := openPages(in.path, reference); err == nil {
			src = fast
		} else if !errors.Is(err, pages.ErrUnusual) {
			reference.Close()
			return nil, in.damaged(err)
		}
	}
	t, err := load(ctx, src, in, &opt)
	if err != nil {
		src.Close()
		return nil, err
	}
	t.source, t.temp = src, in.temp
	if fast, ok := src.(*pageSource); ok { // single rows come from SQLite
		t.source = fast.sqlSource
		if err := fast.closePages(); err != nil {
			return nil, errors.Join(in.fail("cannot be read", "", err), t.Close())
		}
	}
	in.temp = "" // the trace owns it now
	return t, nil
}

func newInput(ctx context.Context, path string, opt *Options) *input {
	return &input{ctx: ctx, path: path, opt: opt, file: File{Name: filepath.Base(path), Kind: "nsys-sqlite"}}
}

// open makes the input a plain SQLite file and opens it.
func (in *input) open() (*sqlSource, error) {
	if err := in.resolve(); err != nil {
		return nil, err
	}
	var err error
	if in.alone, err = in.settleLog(); err != nil {
		return nil, err
	}
	src, err := openSQL(in.path, in.alone)
	if err != nil {
		return nil, in.fail("cannot be opened", "", err)
	}
	return src, nil
}

// Close releases the file and removes scratch copies.
func (t *Trace) Close() error {
	var err error
	if t.source != nil {
		err = t.source.Close()
	}
	if t.temp != "" {
		err = errors.Join(err, os.RemoveAll(t.temp))
	}
	return errors.Join(err, t.arena.Close())
}

// input turns what the user named into a plain SQLite file that can be opened read-only.
type input struct {
	ctx  context.Context
	path string
	opt  *Options
	file File
	size int64  // of the plain SQLite file with its log, in bytes
	temp string // scratch folder, if one was needed

	alone bool // no log belongs to the file
}

func (in *input) cleanup() {
	if in.temp != "" {
		os.RemoveAll(in.temp)
	}
}

func (in *input) fail(what, do string, err error) error {
	return &InputError{File: in.file.Name, What: what, Do: do, Err: err}
}

func (in *input) damaged(err error) error {
	return in.fail("cannot be read: it is damaged or not a database", "copy or export it again", err)
}

func (in *input) scratch(name string) (string, error) {
	if in.temp == "" {
		dir, err := os.MkdirTemp("", "explain-")
		if err != nil {
			return "", in.noScratch(err)
		}
		in.temp = dir
	}
	return filepath.Join(in.temp, name), nil
}

// noScratch is about a temporary folder that cannot be written, or is full.
func (in *input) noScratch(err error) error {
	return in.fail("needs a scratch copy, and the temporary folder cannot take it", "name another with TMPDIR",
		errors.Unwrap(err))
}

// unwritten tells an error of the scratch copy from one of the input.
func unwritten(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Op != "read"
}

const sqliteMagic = "SQLite format 3\x00"

func (in *input) resolve() error {
	name := strings.ToLower(in.file.Name)
	for depth := 0; ; depth++ {
		info, err := os.Stat(in.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return in.fail("does not exist", "check the path", nil)
		case err != nil:
			return in.fail("cannot be read", "", errors.Unwrap(err))
		case info.IsDir():
			return in.fail("is a folder", "name a .sqlite or .nsys-rep file in it", nil)
		case !info.Mode().IsRegular():
			return in.fail("is not a regular file", "copy it to a file first", nil)
		}
		if depth == 0 {
			in.file.Bytes = info.Size()
		}
		head, err := readHead(in.path)
		if err != nil {
			return in.fail("cannot be read", "", errors.Unwrap(err))
		}
		switch {
		case len(head) == 0:
			return in.fail("is empty", "export the capture again", nil)
		case depth > 3:
			return in.fail("is nested in too many layers of compression", "unpack it first", nil)
		case bytes.HasPrefix(head, []byte(sqliteMagic)):
			if real, err := filepath.EvalSymlinks(in.path); err == nil {
				in.path = real // a log lies beside the file itself
			}
			return in.checkHeader(head, info.Size())
		case bytes.HasPrefix([]byte(sqliteMagic), head):
			return in.fail("is a truncated SQLite file", "copy or export it again", nil)
		case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
			err, name = in.unpack("gzip"), strings.TrimSuffix(name, ".gz")
		case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
			err, name = in.unpack("zstd"), strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".zstd")
		case strings.HasSuffix(name, ".nsys-rep"), strings.HasSuffix(name, ".qdrep"):
			err, name = in.export(name), "export.sqlite"
		case strings.HasSuffix(name, ".qdstrm"):
			return in.fail("is a raw capture stream",
				"turn it into a report with QdstrmImporter of Nsight Systems, then run explain on the .nsys-rep", nil)
		case strings.HasSuffix(name, ".ncu-rep"):
			return in.fail("is a report of Nsight Compute, not of Nsight Systems",
				"run `ncu --import FILE --page raw --csv` and give explain what it prints with --ncu, beside a trace or alone",
				nil)
		case packed(head) != "":
			return in.fail("is packed with "+packed(head), "unpack it, and name the .sqlite or .nsys-rep that is in it",
				nil)
		default:
			return in.fail("is not an Nsight Systems export",
				"run `nsys export --type sqlite --lazy=false` on the .nsys-rep and name the .sqlite it writes", nil)
		}
		if err != nil {
			return err
		}
	}
}

// packed names the packer of a file that explain does not unpack, by its first bytes. Artifacts of a CI run come as
// zip.
func packed(head []byte) string {
	for magic, name := range map[string]string{"PK\x03\x04": "zip", "BZh": "bzip2", "\xfd7zXZ\x00": "xz",
		"7z\xbc\xaf\x27\x1c": "7-Zip"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return name
		}
	}
	return ""
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}

// checkHeader compares the size the database header states with the size the file has. See the SQLite file format,
// section 1.3: the in-header size at offset 28 is valid if the counters at 24 and 92 agree.
func (in *input) checkHeader(head []byte, size int64) error {
	const again = "copy or export it again"
	if len(head) < 100 {
		return in.fail("is a truncated SQLite file", again, nil)
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 {
		return in.fail("is a corrupt SQLite file: its header states an impossible page size", again, nil)
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	valid := binary.BigEndian.Uint32(head[24:]) == binary.BigEndian.Uint32(head[92:])
	if valid && pages*page > size && liveLog(in.path, "-wal") == 0 {
		return in.fail(fmt.Sprintf("is truncated: its header states %d bytes, the file has %d", pages*page, size),
			again, nil)
	}
	return nil
}

// arena is where the capture's columns go: into memory, or where that would not do, into a temporary file.
func (in *input) arena() (*spill.Arena, error) {
	need := int64(float64(in.size) * memoryPerByte)
	if in.opt.MaxMemory <= 0 || need <= in.opt.MaxMemory {
		return spill.New(), nil
	}
	a, err := spill.NewOnDisk("", in.opt.MaxMemory, int64(float64(in.size)*columnsPerByte))
	switch {
	case errors.Is(err, spill.ErrUnsupported):
		return spill.New(), nil
	case err != nil:
		return nil, in.fail(fmt.Sprintf("does not fit into %d MB of memory, and %v", in.opt.MaxMemory>>20, err),
			"name another folder with TMPDIR, or allow more with --max-memory", nil)
	}
	return a, nil
}

// What an analysis holds in memory, and in columns alone, for a byte of the file: the most that was measured, with
// room.
const (
	memoryPerByte  = 0.35
	columnsPerByte = 0.35
)
