package doc

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
