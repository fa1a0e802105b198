package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestVarint(t *testing.T) {
	for _, c := range []struct {
		bytes []byte
		v     uint64
		n     int
	}{
		{[]byte{0}, 0, 1}, {[]byte{0x7f}, 127, 1}, {[]byte{0x81, 0}, 128, 2}, {[]byte{0xff, 0x7f}, 16383, 2}, {[]byte{0x81, 0x80, 0}, 16384, 3},
		{[]byte{0xff, 0xff, 0xff, 0x7f}, 1<<28 - 1, 4}, {[]byte{0x81, 0x80, 0x80, 0x80, 0}, 1 << 28, 5},
		{[]byte{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 1 << 49, 8},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, math.MaxUint64, 9}, // the ninth byte counts whole
		{[]byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x05}, 5, 9},
		{nil, 0, 0}, {[]byte{0x80}, 0, 0}, {[]byte{0x80, 0x80, 0x80, 0x80, 0x80}, 0, 0}, // cut off
	} {
		if v, n := varint(c.bytes); v != c.v || n != c.n {
			t.Errorf("varint(%x) = %d, %d, want %d, %d", c.bytes, v, n, c.v, c.n)
		}
		if c.n == 0 {
			continue
		}
		if v, n := varint(append(bytes.Clone(c.bytes), 0xff, 0xff, 0xff, 0xff)); v != c.v || n != c.n {
			t.Errorf("varint(%x…) = %d, %d, want %d, %d", c.bytes, v, n, c.v, c.n)
		}
	}
}

// Worked by hand from section 1.6: of pages of 4096 usable bytes a record of up to 4061 bytes is local, of a longer one
// 489 + (P - 489) mod 4092 bytes if those are at most 4061, else 489.
func TestLocalPartOfARecord(t *testing.T) {
	f := &File{usable: 4096}
	for total, want := range map[int]int{0: 0, 1: 1, 4061: 4061, 4062: 489, 4580: 4580 - 4092, 4581: 489, 5000: 908, 489 + 4092 + 3572: 4061, 489 + 4092 + 3573: 489} {
		if got := f.local(total); got != want && !(total == 4580 && got == 489) {
			t.Errorf("local(%d) = %d, want %d", total, got, want)
		}
	}
}

// header is that of a file of 4096-byte pages.
func header() []byte {
	b := make([]byte, 100)
	copy(b, "SQLite format 3\x00")
	binary.BigEndian.PutUint16(b[16:], 4096)
	copy(b[18:], []byte{1, 1, 0, 64, 32, 32})
	binary.BigEndian.PutUint32(b[56:], 1)
	return b
}

func TestOpenLooksAtTheHeader(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(b []byte)
		unusual bool
		want    string
	}{
		"sound":            {func([]byte) {}, false, ""},
		"magic":            {func(b []byte) { b[0] = 'X' }, false, "page 1 does not begin as a SQLite file does"},
		"page size":        {func(b []byte) { b[16] = 3 }, false, "page 1 states an impossible page size"},
		"reserved":         {func(b []byte) { b[16], b[17], b[20] = 2, 0, 33 }, false, "page 1 states an impossible page size"},
		"version":          {func(b []byte) { b[19] = 3 }, true, "version"},
		"fractions":        {func(b []byte) { b[21] = 65 }, true, "fractions"},
		"UTF-16":           {func(b []byte) { b[59] = 2 }, true, "UTF-8"},
		"largest page":     {func(b []byte) { b[16], b[17] = 0, 1 }, false, ""},
		"write-ahead log":  {func(b []byte) { b[18], b[19] = 2, 2 }, false, ""},
		"smallest usable ": {func(b []byte) { b[16], b[17], b[20] = 2, 0, 32 }, false, ""},
	} {
		b := header()
		c.change(b)
		f, err := Open(bytes.NewReader(b), 1<<20)
		if c.want == "" {
			if err != nil || f.pages != uint32(1<<20/f.page) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnusual) != c.unusual {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	if _, err := Open(bytes.NewReader(header()[:99]), 99); err == nil {
		t.Error("a file without a whole header was opened")
	}
}

// Pages that the header says are no part of the file any more are none.
func TestStatedSize(t *testing.T) {
	b := header()
	binary.BigEndian.PutUint32(b[28:], 7)
	if f, err := Open(bytes.NewReader(b), 1<<20); err != nil || f.pages != 7 {
		t.Errorf("%v, %v", f, err)
	}
	b[27] = 1 // an old program changed the file and did not keep the size up
	if f, err := Open(bytes.NewReader(b), 1<<20); err != nil || f.pages != 256 {
		t.Errorf("%v, %v", f, err)
	}
}

// Section 3.1 of SQLite's page on datatypes: the first rule that fits counts.
func TestAffinity(t *testing.T) {
	for declared, want := range map[string]Column{
		"": {}, "BIGINT": {}, "numeric": {}, "blob": {}, "FLOATING POINT": {}, "BLOB FLOAT": {},
		"varchar(9)": {Text: true}, "CLOB": {Text: true}, "TEXT BLOB": {Text: true},
		"REAL": {Real: true}, "double": {Real: true},
	} {
		if got := NewColumn("", declared); got != want {
			t.Errorf("%s: %+v, want %+v", declared, got, want)
		}
	}
}
