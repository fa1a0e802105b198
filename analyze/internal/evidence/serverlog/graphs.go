package serverlog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// GraphRow is one row of vLLM's CUDA graph statistics, over all times it was logged.
type GraphRow struct {
	Unpadded, Padded, Paddings int64 // tokens of one batch
	Mode                       string
	Count                      int64
}

// maxGraphRows bounds the different rows that are kept.
const maxGraphRows = 1 << 16

// Graphs are the CUDA graph statistics: each table counts what ran since the one before.
type Graphs struct {
	rows    map[GraphRow]int64
	Tables  int64
	Lines   int64 // rows read
	Dropped int64
}

// Rows by mode and tokens.
func (g *Graphs) Rows() []GraphRow {
	list := make([]GraphRow, 0, len(g.rows))
	for r, n := range g.rows {
		r.Count = n
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b GraphRow) int {
		return cmp.Or(strings.Compare(a.Mode, b.Mode), cmp.Compare(a.Padded, b.Padded),
			cmp.Compare(a.Unpadded, b.Unpadded), cmp.Compare(a.Paddings, b.Paddings))
	})
	return list
}

// graphLine reads one row of the table, wherever on the line it begins:
//
//	| 1               | 1             | 0            | FULL         | 116   |
func (g *Graphs) graphLine(m []byte) bool {
	m = bytes.TrimRight(m, " \t")
	if len(m) < 11 || m[len(m)-1] != '|' {
		return false
	}
	m = m[:len(m)-1]
	var cells [5][]byte
	for i := 4; i >= 0; i-- {
		at := bytes.LastIndexByte(m, '|')
		if at < 0 {
			return false
		}
		cells[i], m = bytes.TrimSpace(m[at+1:]), m[:at]
	}
	var v [5]int64
	for _, i := range [...]int{0, 1, 2, 4} {
		n, rest, ok := digits(cells[i])
		if !ok || len(rest) > 0 {
			return false
		}
		v[i] = n
	}
	mode := graphMode(string(cells[3]))
	if mode == "" {
		mode = "other"
	}
	g.Lines++
	key := GraphRow{Unpadded: v[0], Padded: v[1], Paddings: v[2], Mode: mode}
	if g.rows == nil {
		g.rows = map[GraphRow]int64{}
	}
	if _, ok := g.rows[key]; !ok && len(g.rows) == maxGraphRows {
		g.Dropped++
		return true
	}
	g.rows[key] += v[4]
	return true
}
