// Package doc is a small document tree: what a page says, without how it looks. Package present makes documents,
// package render turns them into markdown, terminal text and HTML.
//
// The tree separates explain's own words ([Text], [Strong], [Code]) from text that came out of a capture ([Name]):
// kernel names, NVTX ranges, device names and label values can hold anything, so every renderer shows a name as inert
// literal text. Own words are escaped as well, but may be set in the renderer's style.
//
// Texts here are raw. Nothing in a tree is escaped, shortened or wrapped: that is the renderer's work.
package doc

import (
	"slices"
	"strings"
)

// Document is one page.
type Document []Block

// Add appends the blocks that show something.
func (d *Document) Add(b ...Block) { *d = append(*d, Some(b...)...) }

// Some returns the blocks that show something: what a report lacks is an empty block.
func Some(blocks ...Block) []Block { return slices.DeleteFunc(slices.Clone(blocks), Block.empty) }

// blank reports whether spans show nothing. An empty name is shown as such.
func blank(spans []Span) bool {
	return !slices.ContainsFunc(spans, func(s Span) bool { return s.Text != "" || s.Kind == KindName })
}

// Part is a heading and the blocks below it; nothing if these show nothing.
func Part(h Heading, blocks ...Block) []Block {
	if blocks = Some(blocks...); len(blocks) == 0 {
		return nil
	}
	return append([]Block{h}, blocks...)
}

// Fold folds blocks under a summary, which is a part of [Spans]; it is empty if they show nothing.
func Fold(id string, summary any, blocks ...Block) Details {
	return Details{ID: id, Summary: Spans(summary), Blocks: Some(blocks...)}
}

// Block is one of [Heading], [Answer], [Paragraph], [List], [Fields], [Table], [Details], [Command], [Note],
// [Chart] and [Timeline].
//
// Why a closed interface and not one struct with a kind: a renderer is a type switch over ten types, and a block
// cannot carry fields of another.
type Block interface {
	empty() bool // it shows nothing
}

// Heading starts a part of the page. Level 1 is the title.
type Heading struct {
	Level int // 1..6
	ID    string
	Group string // of a level 2, in the contents of a page; empty: the group of the heading before it
	Spans []Span
}

// In puts a heading into a group of the contents.
func (h Heading) In(group string) Heading {
	h.Group = group
	return h
}

// Answer is what the page says in one sentence, set so that it is read first.
type Answer struct {
	Spans []Span
}

// Paragraph is running text.
type Paragraph struct {
	Spans []Span
}

// List is a bulleted or numbered list.
type List struct {
	Ordered bool
	Items   []Item
}

// Add appends a line of the given parts, see [Spans].
func (l *List) Add(parts ...any) { l.Items = append(l.Items, Item{Spans: Spans(parts...)}) }

// Item is one line of a list, with blocks (usually another list) beneath it.
type Item struct {
	Spans  []Span
	Blocks []Block
}

// Fields are short labels with one value each, aligned where the renderer can align.
type Fields struct {
	Items []Field
}

// Field is one labelled value.
type Field struct {
	Label string
	Value []Span
}

// Add appends a labelled value of the given parts, see [Spans].
func (f *Fields) Add(label string, parts ...any) {
	f.Items = append(f.Items, Field{Label: label, Value: Spans(parts...)})
}

// Table is rows under columns. A renderer may leave out columns marked Wide, right to left, if there is no room.
type Table struct {
	ID      string
	Caption []Span
	Columns []Column
	Rows    [][]Cell
	RowIDs  []string // of the rows that a link leads to, by row; may be shorter than Rows
	Foot    [][]Cell // rows that are not entries: "others", sums
	File    string   // relative path of a file with every row and column; empty: there is none
}

// Row appends a row, see [Row].
func (t *Table) Row(cells ...any) { t.Rows = append(t.Rows, Row(cells...)) }

// Last appends a row that is no entry, see [Row].
func (t *Table) Last(cells ...any) { t.Foot = append(t.Foot, Row(cells...)) }

// Row is the cells of a row: each as a part of [Spans], or nil if it is blank.
func Row(cells ...any) []Cell {
	row := make([]Cell, len(cells))
	for i, c := range cells {
		if c != nil {
			row[i] = Spans(c)
		}
	}
	return row
}

// Cols are columns by their titles. Before a title, > marks a column of numbers, and + one that can be left out:
// ">+Runs".
func Cols(titles ...string) []Column {
	list := make([]Column, len(titles))
	for i, t := range titles {
		for ; strings.HasPrefix(t, ">") || strings.HasPrefix(t, "+"); t = t[1:] {
			list[i].Right = list[i].Right || t[0] == '>'
			list[i].Wide = list[i].Wide || t[0] == '+'
		}
		list[i].Title = t
	}
	return list
}

// Column is the head of a column.
type Column struct {
	Title string // with the unit of its numbers: "Total (ms)"; if all titles are empty there is no head
	Right bool   // its cells are numbers, which end at the right
	Wide  bool   // detail that can be left out
	Whole bool   // what a reader types again: never shortened
	// Bars are, for each row, how far a bar behind its number reaches, from -1 (to the left) to 1; nil: no bars.
	Bars []float64
}

// Cell is the content of one field of a table. An empty cell is blank.
type Cell = []Span

// Details are folded away under their summary where the renderer can fold. With an ID they are a part of their own,
// which a link can lead to and the contents name.
type Details struct {
	ID      string
	Summary []Span
	Blocks  []Block
}

// Command is a command line for a reader to run.
type Command struct {
	Text string
}

// Note is set apart from the text around it.
type Note struct {
	Kind   NoteKind
	Blocks []Block
}

// NoteKind says how urgent a note is.
type NoteKind int

const (
	Info NoteKind = iota
	Caution
	Danger
)

// Chart is a drawing as data, see report.Chart. Renderers that cannot draw leave it out.
type Chart struct {
	ID     string
	Title  string
	Kind   string
	Unit   string // base unit of the values
	XUnit  string // base unit of labels that are numbers
	XTitle string
	Noise  float64 // of a trend: the standard deviation of the logarithm of its values; 0: not known
	Series []Series
	Note   string // how to read the drawing; only pages that draw it show it
}

// Series is one named row of a chart, with one label for each value.
type Series struct {
	Name   string
	Style  string
	Labels []string
	Values []float64
	// Category of the kernel that a box of a flame is; empty: it is a range.
	Category string
	Share    float64  // of a scatter's point: the part of all time that its area stands for, 0 to 1; 0: not known
	Note     string   // of a scatter's point: what else there is to say of it
	Tones    []Tone   // of each value of a forest and of a trend
	Words    []string // of each point of a trend: what it is
	Links    []string // of each point of a trend: where it leads
}

// Add appends a value and its label.
func (s *Series) Add(label string, value float64) {
	s.Labels, s.Values = append(s.Labels, label), append(s.Values, value)
}

// Timeline is what happens in a step: lanes of marks under one time axis from 0. Renderers that cannot draw leave it
// out: its numbers are in a table beside it.
type Timeline struct {
	ID     string
	Title  string
	Unit   string  // base unit of times
	Length float64 // of the axis
	Lanes  []Lane
	Note   []Span // below the drawing
}

// Lane is one row of the drawing.
type Lane struct {
	Title string // hostile text, as all names here
	Rows  int    // of marks below each other, at least 1
	Marks []Mark
	Joins []Join // instead of marks: lines from the lane above to the one below
}

// Mark is a stretch of time in a lane.
type Mark struct {
	Start, Length float64
	Row           int
	Name          string // hostile text
	Colour        string // category of a kernel, cause of idle time, good or bad
	Text          string // own words about it
	Label         string // own words drawn beside it; empty for none
}

// Join is a line from one lane to the next.
type Join struct{ From, To float64 }

func (Heading) empty() bool     { return false }
func (b Answer) empty() bool    { return blank(b.Spans) }
func (b Paragraph) empty() bool { return blank(b.Spans) }
func (b List) empty() bool      { return len(b.Items) == 0 }
func (b Fields) empty() bool    { return len(b.Items) == 0 }
func (b Table) empty() bool     { return len(b.Columns) == 0 || len(b.Rows)+len(b.Foot) == 0 }
func (b Details) empty() bool   { return len(b.Blocks) == 0 }
func (b Note) empty() bool      { return len(b.Blocks) == 0 }
func (b Command) empty() bool   { return b.Text == "" }
func (b Timeline) empty() bool  { return len(b.Lanes) == 0 }
func (b Chart) empty() bool {
	return !slices.ContainsFunc(b.Series, func(s Series) bool { return len(s.Values) > 0 })
}
