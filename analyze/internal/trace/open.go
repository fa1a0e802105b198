package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/limit"
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

func (in *input) unpack(kind string) error {
	src, err := os.Open(in.path)
	if err != nil {
		return in.fail("cannot be read", "", errors.Unwrap(err))
	}
	defer src.Close()
	var r io.Reader
	if kind == "gzip" {
		z, err := gzip.NewReader(src)
		if err != nil {
			return in.fail("is not valid gzip", "copy it again", err)
		}
		r = z
	} else {
		z, err := zstd.NewReader(src, zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return in.fail("is not valid zstd", "copy it again", err)
		}
		defer z.Close()
		r = z
	}
	path, err := in.scratch(fmt.Sprintf("unpacked-%s-%d", kind, len(in.path)))
	if err != nil {
		return err
	}
	dst, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return in.noScratch(err)
	}
	most := int64(math.MaxInt64)
	if info, err := src.Stat(); err == nil {
		most = limit.Packed(info.Size()).Bytes
	}
	if free, ok := limit.Free(in.temp); ok {
		most = min(most, int64(min(free, math.MaxInt64))-keptFree)
	}
	done, err := io.Copy(dst, &tracked{r: limit.Limit{Bytes: most}.Reader(r), in: in})
	if e := dst.Close(); err == nil {
		err = e
	}
	if err != nil {
		if e := in.ctx.Err(); e != nil {
			return e
		}
		var beyond *limit.Error
		switch {
		case errors.As(err, &beyond):
			return in.fail("is not unpacked: it is "+beyond.Error(),
				"a capture of that size needs room in TMPDIR; unpack it yourself if it is one", nil)
		case unwritten(err):
			return in.noScratch(err)
		}
		return in.fail("cannot be unpacked: it is truncated or not valid "+kind, "copy it again", err)
	}
	in.opt.progress("unpack: done", done)
	in.path = path
	return nil
}

// tracked reports progress and stops when the context does.
type tracked struct {
	r    io.Reader
	in   *input
	done int64
}

func (t *tracked) Read(b []byte) (int, error) {
	if err := t.in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(b)
	t.done += int64(n)
	t.in.opt.progress("unpack", t.done)
	return n, err
}

// export runs nsys export into the scratch folder.
func (in *input) export(name string) error {
	in.file.Kind = "nsys-rep"
	getenv := in.opt.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	nsys := in.opt.Nsys
	if nsys == "" {
		nsys = getenv("NSYS")
	}
	if nsys == "" {
		found, err := exec.LookPath("nsys")
		if err != nil {
			base := strings.TrimSuffix(strings.TrimSuffix(in.file.Name, filepath.Ext(in.file.Name)), ".nsys-rep")
			return in.fail("is an Nsight Systems report, and nsys is not installed here to export it",
				fmt.Sprintf("where nsys is installed run `nsys export --type sqlite --lazy=false --force-overwrite=true --output %s %s` and give explain the .sqlite, or set $NSYS",
					shellQuote(base+".sqlite"), shellQuote(in.file.Name)), nil)
		}
		nsys = found
	}
	out, err := in.scratch("export.sqlite")
	if err != nil {
		return err
	}
	in.opt.progress("export", 0)
	abs, err := filepath.Abs(in.path)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(strings.ToLower(abs), filepath.Ext(name)) { // unpacked: nsys goes by the extension
		named := filepath.Join(in.temp, "report"+filepath.Ext(name))
		if err := os.Rename(abs, named); err != nil {
			return err
		}
		abs = named
	}
	cmd := exec.CommandContext(in.ctx, nsys, "export", "--type", "sqlite", "--lazy=false", "--force-overwrite=true",
		"--output", out, abs)
	cmd.Dir = in.temp
	said, err := cmd.CombinedOutput()
	if e := in.ctx.Err(); e != nil {
		return e
	}
	if err != nil {
		return in.fail("could not be exported by nsys: "+lastLine(said),
			"try `nsys export` of the nsys version that captured it", err)
	}
	if _, err := os.Stat(out); err != nil {
		return in.fail("was exported by nsys without an error, but no .sqlite was written",
			"try `nsys export` of the nsys version that captured it", nil)
	}
	in.path = out
	return nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if line == "" {
		return "it said nothing"
	}
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return line
}

func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/=,@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func logSize(path, suffix string) int64 {
	info, err := os.Stat(path + suffix)
	if err != nil {
		return 0
	}
	return info.Size()
}

// keptFree is what a scratch copy leaves of the disk.
const keptFree = 64 << 20

// liveLog is how many bytes of a write-ahead log, or of a rollback journal, hold anything. SQLite reads neither beyond
// it: a log whose header is not one is empty, as is one that was filled with zeros, and frames count up to the first
// whose salts are not the header's. See the SQLite file format, sections 3 and 4.
func liveLog(path, suffix string) int64 {
	size := logSize(path, suffix)
	f, err := os.Open(path + suffix)
	if err != nil {
		return size
	}
	defer f.Close()
	head := make([]byte, 32)
	if _, err := io.ReadFull(f, head); err != nil {
		return size
	}
	if suffix == "-journal" {
		if !bytes.HasPrefix(head, []byte{0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7}) {
			return 0
		}
		return size
	}
	page := int64(binary.BigEndian.Uint32(head[8:]))
	if binary.BigEndian.Uint32(head)&^1 != 0x377f0682 || page < 512 || page > 65536 {
		return 0
	}
	at, frame := int64(len(head)), make([]byte, 24)
	for ; at+int64(len(frame))+page <= size; at += int64(len(frame)) + page {
		if _, err := f.ReadAt(frame, at); err != nil || !bytes.Equal(frame[8:16], head[16:24]) {
			break
		}
	}
	return at
}

// settleLog decides how to open the file. Without a log beside it the file is all there is and SQLite may treat it as
// immutable. With a write-ahead log or a hot journal that holds content, SQLite would have to create files beside it to
// read it right: a scratch copy of both is read instead, since ignoring the log would silently give old data.
func (in *input) settleLog() (immutable bool, err error) {
	live := map[string]int64{"": logSize(in.path, ""), "-wal": liveLog(in.path, "-wal"),
		"-journal": liveLog(in.path, "-journal")}
	in.size = live[""] + live["-wal"] + live["-journal"]
	if in.size == live[""] {
		return true, nil
	}
	if err := limit.Room(os.TempDir(), in.size+keptFree); err != nil {
		return false, in.fail("has a log beside it, and is read from a copy, which "+err.Error(),
			"name another folder with TMPDIR", nil)
	}
	copyTo, err := in.scratch("with-log.sqlite")
	if err != nil {
		return false, err
	}
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if live[suffix] == 0 {
			continue
		}
		if err := in.copyFile(in.path+suffix, copyTo+suffix, live[suffix]); err != nil {
			return false, err
		}
	}
	in.path = copyTo
	return false, nil
}

// copyFile copies the first bytes of a file.
func (in *input) copyFile(from, to string, bytes int64) error {
	src, err := os.Open(from)
	if err != nil {
		return in.fail("cannot be read", "", errors.Unwrap(err))
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return in.noScratch(err)
	}
	_, err = io.Copy(dst, &tracked{r: io.LimitReader(src, bytes), in: in})
	if e := dst.Close(); err == nil {
		err = e
	}
	switch {
	case err == nil || in.ctx.Err() != nil:
		return err
	case unwritten(err):
		return in.noScratch(err)
	}
	return in.fail("cannot be read", "", errors.Unwrap(err))
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
