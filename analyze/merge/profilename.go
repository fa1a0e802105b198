package merge

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
)

// The names of PyTorch profiles often state the rank that their contents lack: worker_rank0.12.pt.trace.json,
// 1700000000-TP-0-DECODE.trace.json.gz, 1700000000-TP-1-PP-0.trace.json,
// dp0_pp1_tp0_dcp0_ep0_rank2.12.pt.trace.json.gz.

// fromProfileName marks a rank that the profile's name may state, once all profiles of the run are known.
const fromProfileName = "profile name"

// NamesRank marks the capture as a profile: if its contents do not state its rank, its name may.
func (c *Capture) NamesRank() {
	for _, t := range c.Tracks {
		if t.Rank < 0 && t.PID == c.Tracks[0].PID {
			t.From = fromProfileName
		}
	}
}

var indexInName = regexp.MustCompile(`(?i)(?:^|[^a-z])(rank|dp|pp|tp)[-_]?(\d{1,6})`)

// indexes returns the indexes that the name of a profile states, by kind.
func indexes(name string) map[string]int64 {
	found := map[string]int64{}
	for _, m := range indexInName.FindAllStringSubmatch(name, -1) {
		kind := strings.ToLower(m[1])
		if _, known := found[kind]; !known {
			found[kind], _ = strconv.ParseInt(m[2], 10, 64) // of six digits at most
		}
	}
	return found
}

// rankProfiles numbers profiles by the first of these that all their names state and that differs between them: the
// rank; the tensor-parallel index; the data-, pipeline- and tensor-parallel indexes, of which the first varies most
// slowly, as vLLM and Megatron number ranks.
func (list captures) rankProfiles() {
	var profiles [][]*ranks.Track
	var of []map[string]int64
	size := map[string]int64{}
	for _, c := range list {
		var tracks []*ranks.Track
		for _, t := range c.tracks {
			if t.From == fromProfileName && t.Rank < 0 {
				t.From = ""
				tracks = append(tracks, t)
			}
		}
		if len(tracks) == 0 {
			continue
		}
		stated := indexes(c.Name)
		for kind, v := range stated {
			size[kind] = max(size[kind], v+1)
		}
		profiles, of = append(profiles, tracks), append(of, stated)
	}
	for _, kinds := range [][]string{{"rank"}, {"tp"}, {"dp", "pp", "tp"}} {
		numbers, ok := numbersOf(of, kinds, size)
		if !ok {
			continue
		}
		for i, tracks := range profiles {
			for _, t := range tracks {
				t.Rank, t.From = numbers[i], "name"
			}
		}
		return
	}
}

// numbersOf computes ranks from indexes of some kinds; ok is false if a name states none of them, or two state the
// same.
func numbersOf(of []map[string]int64, kinds []string, size map[string]int64) (numbers []int64, ok bool) {
	seen := map[int64]bool{}
	for _, stated := range of {
		number, some := int64(0), false
		for _, kind := range kinds {
			v, known := stated[kind]
			number, some = number*max(size[kind], 1)+v, some || known
		}
		if !some || seen[number] {
			return nil, false
		}
		seen[number] = true
		numbers = append(numbers, number)
	}
	return numbers, true
}
