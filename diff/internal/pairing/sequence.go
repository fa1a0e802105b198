package pairing

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report/align"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Positions aligns the head's sequence with the base's: for each position of the head it returns the base's position,
// or -1. names maps a head's kernel to the base's name of the kernel that it replaced. Several streams are aligned one
// by one if that finds more pairs. The result is nil if the sequences have too little in common.
func Positions(base, head *side.Sequence, names map[string]string) []int32 {
	all := func(s *side.Sequence, of map[string]string, stream int) (keys []string, at []int32) {
		for i := range s.Positions {
			if p := &s.Positions[i]; stream < 0 || p.Stream == stream {
				name, ok := of[p.Name]
				if !ok { // one that the base has may be empty
					name = p.Name
				}
				keys, at = append(keys, name), append(at, int32(i))
			}
		}
		return keys, at
	}
	bk, _ := all(base, nil, -1)
	hk, _ := all(head, names, -1)
	best, ok := align.Pairs(bk, hk, align.MaxEdits)
	if base.Streams == head.Streams && base.Streams > 1 {
		apart, fine := slices.Repeat([]int32{-1}, len(hk)), true
		for stream := range base.Streams {
			bk, ba := all(base, nil, stream)
			hk, ha := all(head, names, stream)
			of, found := align.Pairs(bk, hk, align.MaxEdits)
			fine = fine && found
			for k, i := range of {
				if i >= 0 {
					apart[ha[k]] = ba[i]
				}
			}
		}
		if fine && (!ok || paired(apart) > paired(best)) {
			best, ok = apart, true
		}
	}
	if !ok || 2*paired(best) < min(len(bk), len(hk)) {
		return nil
	}
	rename(base, head, best)
	return best
}

func paired(of []int32) int {
	return lists.Count(of, func(i int32) bool { return i >= 0 })
}

// rename pairs, in order, the remaining kernels between the same two neighbours, if both sides have equally many of the
// same categories: kernels that replaced others.
func rename(base, head *side.Sequence, of []int32) {
	taken := make([]bool, len(base.Positions))
	for _, i := range of {
		if i >= 0 {
			taken[i] = true
		}
	}
	last := int32(-1)
	for k := 0; k < len(of); {
		if of[k] >= 0 {
			last = max(last, of[k])
			k++
			continue
		}
		to := k
		for to < len(of) && of[to] < 0 {
			to++
		}
		from := last + 1
		until := from
		for int(until) < len(taken) && !taken[until] {
			until++
		}
		if int(until-from) == to-k && (to == len(of) || of[to] == until) {
			same := slices.EqualFunc(base.Positions[from:until], head.Positions[k:to],
				func(b, h side.Position) bool { return b.Category == h.Category })
			for i := range to - k {
				if same {
					of[k+i] = from + int32(i)
				}
			}
		}
		k = to
	}
}
