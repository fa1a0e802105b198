package merge

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
)

// TestRanksOfProfileNames by hand: of two pipeline stages with two tensor ranks each, stage 1 and tensor 0 is rank 2.
func TestRanksOfProfileNames(t *testing.T) {
	for name, x := range map[string]struct {
		names []string
		want  []int64
	}{
		"a rank":          {[]string{"w_rank1.1.pt.trace.json", "w_rank0.1.pt.trace.json", "w_rank3.1.pt.trace.json"}, []int64{1, 0, 3}},
		"tensor parallel": {[]string{"17-TP-0-DECODE.trace.json", "17-TP-1-DECODE.trace.json"}, []int64{0, 1}},
		"stages":          {[]string{"17-TP-0-PP-0.json", "17-TP-1-PP-0.json", "17-TP-0-PP-1.json", "17-TP-1-PP-1.json"}, []int64{0, 1, 2, 3}},
		"one missing":     {[]string{"17-TP-0-PP-0.json", "17-TP-0-PP-1.json", "17-TP-1-PP-1.json"}, []int64{0, 2, 3}},
		"within a group":  {[]string{"17-TP-0-DP-0.json", "17-TP-1-DP-0.json", "17-TP-2-DP-1.json", "17-TP-3-DP-1.json"}, []int64{0, 1, 2, 3}},
		"vLLM":            {[]string{"dp0_pp0_tp1_dcp0_ep1_rank1.5.pt.trace.json", "dp0_pp1_tp0_dcp0_ep0_rank2.5.pt.trace.json"}, []int64{1, 2}},
		"rank of replica": {[]string{"dp0_pp0_tp0_rank0.json", "dp0_pp0_tp1_rank1.json", "dp1_pp0_tp0_rank0.json", "dp1_pp0_tp1_rank1.json"}, []int64{0, 1, 2, 3}},
		"pipeline alone":  {[]string{"x-PP-1.json", "x-PP-0.json"}, []int64{1, 0}},
		"nothing":         {[]string{"a.json", "http1.json"}, []int64{-1, -1}},
		"the same":        {[]string{"a/TP-0.json", "b/TP-0.json"}, []int64{-1, -1}},
	} {
		f := &fold{}
		for _, n := range x.names {
			c := &Capture{Tracks: []*ranks.Track{{Rank: -1, World: -1, PID: 5}, {Rank: -1, World: -1, PID: 6}}}
			c.NamesRank()
			f.captures = append(f.captures, &captureFold{Head: Head{Name: n}, tracks: c.Tracks})
		}
		f.captures.rankProfiles()
		var got []int64
		for _, c := range f.captures {
			got = append(got, c.tracks[0].Rank)
			if c.tracks[1].Rank != -1 {
				t.Errorf("%s: another process has rank %d", name, c.tracks[1].Rank)
			}
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}
