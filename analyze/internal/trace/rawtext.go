package trace

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// RangeText returns the raw text of the given ranges (indexes into Ranges), in their order. Raw texts are mostly unique,
// so they are not kept in memory: the few that are shown are read again.
func (t *Trace) RangeText(ranges []int) ([]string, error) {
	rows := make([]int64, len(ranges))
	for i, r := range ranges {
		rows[i] = t.Ranges.row.get(r)
	}
	found := make(map[int64]string, len(rows))
	if !t.raw.table.Rowless {
		err := t.source.Fetch(t.raw.table.Name, []string{t.raw.table.column("text"), t.raw.table.column("textId")}, rows,
			func(row int64, cells []cell) error {
				for i := range cells {
					switch c := &cells[i]; c.Kind {
					case pages.Text, pages.Blob:
						found[row] = clip(c.S)
						return nil
					case pages.Int:
						s, ok := t.raw.strings[c.Bits]
						if !ok {
							s = "#" + strconv.FormatInt(c.Bits, 10)
						}
						found[row] = s
						return nil
					}
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
