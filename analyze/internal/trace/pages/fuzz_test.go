package pages

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// pageOf makes a leaf page of 512 bytes of cells, the last ones first.
func pageOf(cells ...[]byte) []byte {
	b := make([]byte, 512)
	b[0] = leafTable
	binary.BigEndian.PutUint16(b[3:], uint16(len(cells)))
	at := len(b)
	for i, c := range cells {
		at -= len(c)
		copy(b[at:], c)
		binary.BigEndian.PutUint16(b[leafHeader+2*i:], uint16(at))
	}
	binary.BigEndian.PutUint16(b[5:], uint16(at))
	return b
}

// interiorOf makes an interior page of 512 bytes: children, each but the last with its key.
func interiorOf(children []uint32, keys []byte) []byte {
	b := make([]byte, 512)
	b[0] = interiorTable
	binary.BigEndian.PutUint16(b[3:], uint16(len(keys)))
	at := len(b)
	for i, k := range keys {
		at -= 5
		binary.BigEndian.PutUint32(b[at:], children[i])
		b[at+4] = k
		binary.BigEndian.PutUint16(b[interiorHeader+2*i:], uint16(at))
	}
	binary.BigEndian.PutUint16(b[5:], uint16(at))
	binary.BigEndian.PutUint32(b[8:], children[len(keys)])
	return b
}

// record makes a cell of a row whose record has the given header and body.
func record(rowid byte, header, body []byte) []byte {
	c := []byte{byte(1 + len(header) + len(body)), rowid, byte(1 + len(header))}
	return append(append(c, header...), body...)
}

// small is a file of 512-byte pages: a header page, a root, two leaves, and an overflow page.
func small() []byte {
	first := make([]byte, 512)
	copy(first, header())
	binary.BigEndian.PutUint16(first[16:], 512)
	// A record of 608 bytes: a text of 603 and an integer of one. 39 + (608 - 39) mod 508 = 100 of them are local.
	long := []byte{0x84, 0x60, 4, 4, 0x89, 0x43, 1}
	long = append(long, bytes.Repeat([]byte{'x'}, 96)...)
	long = append(long, 0, 0, 0, 5)
	rest := append(make([]byte, 4), bytes.Repeat([]byte{'x'}, 507)...)
	return slicesOf(first,
		interiorOf([]uint32{3, 4}, []byte{2}),
		pageOf(record(1, []byte{1, 23, 0}, []byte("\x05hello")), record(2, []byte{6, 9, 7}, append(make([]byte, 8), "\x40\x09\x21\xfb\x54\x44\x2d\x18"...))),
		pageOf(record(3, []byte{2, 12, 8}, []byte{1, 2}), long),
		append(rest, 77))
}

func slicesOf(pages ...[]byte) []byte { return bytes.Join(pages, nil) }

// A number in a column that stores numbers as text is of another table; a text, a blob or NULL may be its own.
func TestNumberInAText(t *testing.T) {
	columns := []Column{NewColumn("b", "VARCHAR(9)")}
	for kind, wrong := range map[byte]string{0: "", 1: "has a record of another table", 7: "has a record of another table", 9: "has a record of another table", 12: "", 23: ""} {
		if _, said := newPlan([]byte{2, kind}, columns, []int{0}); said != wrong {
			t.Errorf("type %d: %q, want %q", kind, said, wrong)
		}
	}
}

func needed(c Column) Column { c.Needs = true; return c }

var threeColumns = Table{Name: "t", Root: 2,
	Columns: []Column{needed(NewColumn("a", "INTEGER")), NewColumn("b", ""), NewColumn("c", "REAL")}}

func TestRowsByHand(t *testing.T) {
	b := small()
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]Cell{
		{IntCell(5), TextCell("hello"), {}, IntCell(1)},
		{IntCell(0), IntCell(1), FloatCell(3.141592653589793), IntCell(2)},
		{IntCell(258), {Kind: Blob}, FloatCell(0), IntCell(3)},
		{TextCell(strings.Repeat("x", 603)), IntCell(77), {}, IntCell(4)},
	}
	n := 0
	err = f.Rows(&threeColumns, []string{"a", "B", "c", "rowid"}, func(row []Cell) error {
		for i := range row {
			if row[i] != want[n][i] {
				t.Errorf("row %d, column %d: %+v, want %+v", n, i, row[i], want[n][i])
			}
		}
		n++
		return nil
	})
	if err != nil || n != 4 {
		t.Errorf("%d rows, %v", n, err)
	}
	if err := f.Rows(&threeColumns, []string{"d"}, nil); err == nil {
		t.Error("a column that is not there was read")
	}
}

func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"child outside":      {func(b []byte) { b[512+11] = 200 }, "page 2 points outside of the file"},
		"loop":               {func(b []byte) { b[512+11] = 2 }, "page 2 is used twice"},
		"shared leaf":        {func(b []byte) { b[512+11] = 3 }, "page 3 is used twice"},
		"leaf is none":       {func(b []byte) { b[1024] = 2 }, "page 3 is not a leaf of a table, but stands where one must be"},
		"too many cells":     {func(b []byte) { b[1024+3] = 9 }, "page 3 states more cells than it can have"},
		"cell outside":       {func(b []byte) { b[1024+8] = 0xff }, "page 3 has a cell outside of the page"},
		"cell in the header": {func(b []byte) { b[1024+8], b[1024+9] = 0, 3 }, "page 3 has a cell outside of the page"},
		"record outside":     {func(b []byte) { b[1024+512-12] = 100 }, "page 3 has a cell that reaches outside of the page"},
		"header too long":    {func(b []byte) { b[1024+512-10] = 90 }, "page 3 has a record whose header is longer than itself"},
		"type 10":            {func(b []byte) { b[1024+512-9] = 10 }, "page 3 has a value of a type that does not exist"},
		"text too long":      {func(b []byte) { b[1024+512-8] = 25 }, "page 3 has a record that is longer or shorter than its header says"},
		"overflow outside":   {func(b []byte) { b[1536+503] = 99 }, "page 4 points outside of the file for the rest of a record"},
		"overflow loop": {func(b []byte) { // a record of 1116 bytes, with a text of 1111, whose second overflow page is its first
			copy(b[1536+397:], []byte{0x88, 0x5c})
			copy(b[1536+401:], []byte{0x91, 0x3b})
			b[2048+3] = 5
		}, "page 5 is used twice"},
		"record longer than the file": {func(b []byte) { copy(b[1536+397:], []byte{0xff, 0x5c}) }, "page 4 has a record longer than the file"},
		"record without values":       {func(b []byte) { b[1024+512-12], b[1024+512-10] = 1, 1 }, "page 3 has a record without a value"},
		"empty leaf":                  {func(b []byte) { b[1024+4] = 0 }, "page 3 holds no rows, and is not the only leaf"},
		"empty root":                  {func(b []byte) { b[512+4] = 0 }, "page 2 states more cells than it can have, or none"},
		"interior key order":          {func(b []byte) { copy(b[512:], interiorOf([]uint32{3, 4, 5}, []byte{2, 1})) }, "page 2 has keys out of order"},
		"rowids out of order":         {func(b []byte) { b[1024+512-11] = 2 }, "page 3 has rows out of order"},
		"rowid above the key":         {func(b []byte) { b[512+512-1] = 1 }, "page 3 has rows out of order"},
		"rowid not above the key":     {func(b []byte) { b[512+512-1] = 3 }, "page 4 has rows out of order"},
		"fewer cells":                 {func(b []byte) { b[1024+4] = 1 }, "page 3 has cells that overlap or are lost"},
		"fragments":                   {func(b []byte) { b[1024+7] = 2 }, "page 3 has cells that overlap or are lost"},
		"free block in the header":    {func(b []byte) { b[1024+2] = 9 }, "page 3 has cells that overlap or are lost"},
		"interior cell lost":          {func(b []byte) { b[512+6]-- }, "page 2 has cells that overlap or are lost"},
		"NULL where none may be":      {func(b []byte) { b[1024+512-9] = 0; b[1024+512-12]-- }, "page 3 has a record of another table"},
		"interior cell outside":       {func(b []byte) { b[512+12] = 0xff }, "page 2 has a cell outside of the page"},
	} {
		b := small()
		c.change(b)
		f, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		err = f.Rows(&threeColumns, []string{"a", "b", "c"}, func([]Cell) error { return nil })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		var page *PageError
		if !errors.As(err, &page) {
			t.Errorf("%s: %T is no *PageError", name, err)
		}
	}
}

type countSink struct{ rows *int }

func (countSink) Leaf(int, int) {}

func (s countSink) Row([]Cell) error { *s.rows++; return nil }

// FuzzFile reads whatever bytes there are as the pages of a file, in both ways. Neither may panic or go on for ever, nor
// may they disagree.
func FuzzFile(f *testing.F) {
	f.Add(small()[512:], byte(2))
	f.Add(small()[512:4*512], byte(3))
	f.Fuzz(func(t *testing.T, body []byte, root byte) {
		b := append(small()[:512], body...)
		file, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		table := threeColumns
		table.Root = uint32(root)
		columns := []string{"a", "b", "c", "rowid"}
		rows, bytesSeen := 0, 0
		err = file.Rows(&table, columns, func(row []Cell) error {
			rows++
			for i := range row {
				bytesSeen += len(row[i].S)
			}
			return nil
		})
		if limit := len(b) * (1 + len(b)/480); rows > len(b) || bytesSeen > limit {
			t.Fatalf("%d rows and %d bytes of text from %d bytes", rows, bytesSeen, len(b))
		}
		scan, err2 := file.Prepare([]*Part{{Table: &table, Columns: columns}})
		inPieces := 0
		if err2 == nil {
			err2 = scan.Run(context.Background(), 1, func(int, int) Sink { return countSink{&inPieces} }, func(int64) {})
		}
		if err == nil && err2 == nil && rows != inPieces {
			t.Fatalf("%d rows in order, %d in pieces", rows, inPieces)
		}
		if err != nil && err2 == nil {
			t.Fatalf("in order: %v; in pieces without an error", err)
		}
	})
}
