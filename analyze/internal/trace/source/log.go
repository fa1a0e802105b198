package source

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"github.com/nsys-llm/explain/analyze/limit"
)

// settleLog decides how to open the file. Without a log beside it the file is all there is and SQLite may treat it as
// immutable. With a write-ahead log or a hot journal that holds content, SQLite would have to create files beside it to
// read it right: a scratch copy of both is read instead, since ignoring the log would silently give old data.
func (in *Input) settleLog() (immutable bool, err error) {
	live := map[string]int64{"": logSize(in.path, ""), "-wal": liveLog(in.path, "-wal"),
		"-journal": liveLog(in.path, "-journal")}
	in.Size = live[""] + live["-wal"] + live["-journal"]
	if in.Size == live[""] {
		return true, nil
	}
	if err := limit.Room(os.TempDir(), in.Size+keptFree); err != nil {
		return false, in.Fail("has a log beside it, and is read from a copy, which "+err.Error(),
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
func (in *Input) copyFile(from, to string, bytes int64) error {
	src, err := os.Open(from)
	if err != nil {
		return in.unread(err)
	}
	defer src.Close()
	_, err = in.spool(to, &tracked{r: io.LimitReader(src, bytes), in: in}, in.unread)
	return err
}

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

func logSize(path, suffix string) int64 {
	info, err := os.Stat(path + suffix)
	if err != nil {
		return 0
	}
	return info.Size()
}

// keptFree is what a scratch copy leaves of the disk.
const keptFree = 64 << 20
