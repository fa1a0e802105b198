package source

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/limit"
)

// Options say how a file becomes a plain SQLite file.
type Options struct {
	// Progress gets the bytes done so far of the stage "unpack", and at its end once more as "unpack: done". May be
	// nil; it is called from one goroutine at a time.
	Progress func(stage string, done int64)
	// Getenv reads the environment, in which NSYS is the nsys program that exports .nsys-rep files, if not the one on
	// PATH. Nil: os.Getenv.
	Getenv func(string) string
}

// Report calls Progress, if there is one.
func (o *Options) Report(stage string, done int64) {
	if o.Progress != nil {
		o.Progress(stage, done)
	}
}

// File is where a capture came from. Name is the file's own name: a path never leaves this package.
type File struct {
	Name  string
	Kind  string // nsys-sqlite, nsys-rep or pytorch-profiler
	Bytes int64
}

// Input turns what the user named into a plain SQLite file that can be opened read-only.
type Input struct {
	File File
	Size int64 // of the plain SQLite file with its log, in bytes; known once it is open

	ctx  context.Context
	path string
	opt  Options
	temp string // scratch folder, if one was needed

	alone   bool   // no log belongs to the file
	packing string // of JSON that is not unpacked: gzip or zstd
	packed  int64  // its bytes
}

// PyTorch is the kind of a file that the PyTorch profiler wrote.
const PyTorch = "pytorch-profiler"

// NewInput names a file; nothing is done with it until [Input.Resolve]. Cleanup must follow.
func NewInput(ctx context.Context, path string, opt Options) *Input {
	return &Input{ctx: ctx, path: path, opt: opt, File: File{Name: filepath.Base(path), Kind: "nsys-sqlite"}}
}

// Open opens an input that is resolved.
func (in *Input) Open() (*SQL, error) {
	if in.File.Kind == PyTorch {
		return nil, in.Fail("is a trace of the PyTorch profiler, which this command does not take",
			"name an export of Nsight Systems", nil)
	}
	var err error
	if in.alone, err = in.settleLog(); err != nil {
		return nil, err
	}
	src, err := openSQL(in.path, in.alone)
	if err != nil {
		return nil, in.Fail("cannot be opened", "", err)
	}
	return src, nil
}

// Context is what reading the input stops with.
func (in *Input) Context() context.Context { return in.ctx }

// JSON opens an input that is JSON for reading; one that is packed is unpacked on the way. Size is then what was read.
func (in *Input) JSON() (io.ReadCloser, error) {
	f, err := os.Open(in.path)
	if err != nil {
		return nil, in.unread(err)
	}
	in.Size = 0
	json := struct {
		io.Reader
		io.Closer
	}{&tracked{r: f, in: in, stage: "read", size: &in.Size}, f}
	if in.packing == "" {
		return json, nil
	}
	rd, err := in.unpacker(in.packing, &tracked{r: f, in: in, stage: "read"})
	if err != nil {
		f.Close()
		return nil, err
	}
	json.Reader = &tracked{r: limit.Packed(in.packed).Reader(rd), in: &Input{ctx: in.ctx}, size: &in.Size}
	return json, nil
}

// holdsJSON reports whether a packed file holds JSON, by its first byte: it is read as it is unpacked, and not written
// out first.
func (in *Input) holdsJSON(kind string) bool {
	f, err := os.Open(in.path)
	if err != nil {
		return false
	}
	defer f.Close()
	rd, err := in.unpacker(kind, f)
	if err != nil {
		return false
	}
	head := make([]byte, 64)
	n, _ := io.ReadFull(rd, head) // of a file that is cut off so early nothing can be said
	return isJSON(head[:n])
}

func isJSON(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return bytes.HasPrefix(head, []byte{'{'}) || bytes.HasPrefix(head, []byte{'['})
}

// Fast is the fastest way to read what sql has opened: from its pages if they are as nsys writes them, else sql.
func (in *Input) Fast(sql *SQL) (Source, error) {
	if !in.alone {
		return sql, nil
	}
	fast, err := openPages(in.path, sql)
	switch {
	case err == nil:
		return fast, nil
	case errors.Is(err, pages.ErrUnusual):
		return sql, nil
	}
	return nil, in.Damaged(err)
}

// Keep is the scratch folder, empty if none was needed. It is the caller's from now on, to be removed with the source.
func (in *Input) Keep() string {
	temp := in.temp
	in.temp = ""
	return temp
}

// Cleanup removes the scratch folder unless it was kept.
func (in *Input) Cleanup() {
	if in.temp != "" {
		os.RemoveAll(in.temp)
	}
}

// Fail is an error about the file: what it is, and what to do about it.
func (in *Input) Fail(what, do string, err error) error {
	return &InputError{File: in.File.Name, What: what, Do: do, Err: err}
}

// unread is the error of a file that the system does not let read.
func (in *Input) unread(err error) error { return in.Fail("cannot be read", "", errors.Unwrap(err)) }

// Damaged is the error of a file that SQLite cannot read.
func (in *Input) Damaged(err error) error {
	return in.Fail("cannot be read: it is damaged or not a database", "copy or export it again", err)
}

func (in *Input) scratch(name string) (string, error) {
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
func (in *Input) noScratch(err error) error {
	return in.Fail("needs a scratch copy, and the temporary folder cannot take it", "name another with TMPDIR",
		errors.Unwrap(err))
}

// spool writes what r reads into a new scratch file. failed is what it means if r fails.
func (in *Input) spool(to string, r io.Reader, failed func(error) error) (bytes int64, err error) {
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, in.noScratch(err)
	}
	bytes, err = io.Copy(dst, r)
	err = cmp.Or(err, dst.Close())
	path, ofFile := errors.AsType[*fs.PathError](err)
	switch {
	case err == nil:
		return bytes, nil
	case in.ctx.Err() != nil:
		return 0, in.ctx.Err()
	case ofFile && path.Op != "read":
		return 0, in.noScratch(err)
	}
	return 0, failed(err)
}

const sqliteMagic = "SQLite format 3\x00"

// Resolve makes the input a plain SQLite file, which it unpacks or exports, or leaves it JSON: File.Kind says which.
func (in *Input) Resolve() error {
	name := strings.ToLower(in.File.Name)
	for depth := 0; ; depth++ {
		info, err := os.Stat(in.path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return in.Fail("does not exist", "check the path", nil)
		case err != nil:
			return in.unread(err)
		case info.IsDir():
			return in.Fail("is a folder", "name a .sqlite or .nsys-rep file in it", nil)
		case !info.Mode().IsRegular():
			return in.Fail("is not a regular file", "copy it to a file first", nil)
		}
		if depth == 0 {
			in.File.Bytes = info.Size()
		}
		head, err := readHead(in.path)
		if err != nil {
			return in.unread(err)
		}
		packer := packed(head)
		ends, known := packedEnds[packer]
		switch {
		case len(head) == 0:
			return in.Fail("is empty", "export the capture again", nil)
		case depth > 3:
			return in.Fail("is nested in too many layers of compression", "unpack it first", nil)
		case bytes.HasPrefix(head, []byte(sqliteMagic)):
			if real, err := filepath.EvalSymlinks(in.path); err == nil {
				in.path = real // a log lies beside the file itself
			}
			return in.checkHeader(head, info.Size())
		case bytes.HasPrefix([]byte(sqliteMagic), head):
			return in.Fail("is a truncated SQLite file", "copy or export it again", nil)
		case known && in.holdsJSON(packer):
			in.File.Kind, in.packing, in.packed = PyTorch, packer, info.Size()
			return nil
		case known:
			err = in.unpack(packer, limit.Packed(info.Size()).Bytes)
			for _, end := range ends {
				name = strings.TrimSuffix(name, end)
			}
		case strings.HasSuffix(name, ".nsys-rep"), strings.HasSuffix(name, ".qdrep"):
			err, name = in.export(name), "export.sqlite"
		case strings.HasSuffix(name, ".qdstrm"):
			return in.Fail("is a raw capture stream",
				"turn it into a report with QdstrmImporter of Nsight Systems, then run explain on the .nsys-rep", nil)
		case strings.HasSuffix(name, ".ncu-rep"):
			return in.Fail("is a report of Nsight Compute, not of Nsight Systems",
				"run `ncu --import FILE --page raw --csv` and give explain what it prints with --ncu, beside a trace or alone",
				nil)
		case isJSON(head):
			in.File.Kind = PyTorch
			return nil
		case strings.HasSuffix(name, ".xplane.pb"):
			return in.Fail("is a profile of XLA (xplane.pb), which explain does not read",
				"capture the program with nsys, or a PyTorch program with torch.profiler and name its trace.json", nil)
		case packer != "":
			return in.Fail("is packed with "+packer, "unpack it, and name the .sqlite or .nsys-rep that is in it", nil)
		default:
			return in.Fail("is not an Nsight Systems export",
				"run `nsys export --type sqlite --lazy=false` on the .nsys-rep and name the .sqlite it writes", nil)
		}
		if err != nil {
			return err
		}
	}
}

// packedEnds are the ends of names of files that are unpacked here, by packer.
var packedEnds = map[string][]string{"gzip": {".gz"}, "zstd": {".zst", ".zstd"}}

// packed names the packer of a file by its first bytes. Artifacts of a CI run come as zip.
func packed(head []byte) string {
	for magic, name := range map[string]string{"\x1f\x8b": "gzip", "\x28\xb5\x2f\xfd": "zstd", "PK\x03\x04": "zip",
		"BZh": "bzip2", "\xfd7zXZ\x00": "xz", "7z\xbc\xaf\x27\x1c": "7-Zip"} {
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
func (in *Input) checkHeader(head []byte, size int64) error {
	const again = "copy or export it again"
	if len(head) < 100 {
		return in.Fail("is a truncated SQLite file", again, nil)
	}
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 {
		return in.Fail("is a corrupt SQLite file: its header states an impossible page size", again, nil)
	}
	pages := int64(binary.BigEndian.Uint32(head[28:]))
	valid := binary.BigEndian.Uint32(head[24:]) == binary.BigEndian.Uint32(head[92:])
	if valid && pages*page > size && liveLog(in.path, "-wal") == 0 {
		return in.Fail(fmt.Sprintf("is truncated: its header states %d bytes, the file has %d", pages*page, size),
			again, nil)
	}
	return nil
}
