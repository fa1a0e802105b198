package trace

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// RangeText returns the raw text of the given ranges (indexes into Ranges), in their order. Raw texts are mostly
// unique, so they are not kept in memory: the few that are shown are read again.
func (t *Trace) RangeText(ranges []int) ([]string, error) {
	rows := make([]int64, len(ranges))
	for i, r := range ranges {
		rows[i] = t.Ranges.row.get(r)
	}
	found := make(map[int64]string, len(rows))
	if !t.raw.table.Rowless {
		err := t.source.Fetch(t.raw.table.Name, []string{t.raw.table.Column("text"), t.raw.table.Column("textId")},
			rows,
			func(row int64, cells []cell) error {
				text, id := &cells[0], &cells[1]
				if s := textOf(text); s != "" {
					found[row] = public(s)
				} else if v, ok := textID(text, id); ok {
					if s, ok = t.raw.strings[v]; !ok {
						s = "#" + strconv.FormatInt(v, 10)
					}
					found[row] = s
				} else if text.Kind != pages.Null || id.Kind != pages.Null {
					found[row] = public(textOf(id))
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		text, ok := found[rows[i]]
		if !ok {
			text = t.Ranges.Names[t.Ranges.Name(r)].Text
		}
		texts[i] = text
	}
	return texts, nil
}
