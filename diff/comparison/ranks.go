package comparison

import (
	"errors"
	"fmt"
	"math"
)

// Ranks is the change of two merged runs, rank by rank if both have the same ranks in the same roles, else by role.
// Times are ns; what a side does not know is null. Judged are the run's time, and ranks.held_up_ratio and
// ranks.first_ratio by the rules that name them.
type Ranks struct {
	By    string     `json:"by"`    // rank or role
	Where string     `json:"where"` // one line; empty if all changed alike
	Held  *HeldUp    `json:"held"`  // null if a side does not say whom ranks wait for
	Rows  []RankRow  `json:"rows"`  // in the order of the base's ranks
	Steps []RankStep `json:"steps"` // slowest rank of each step, where every rank has as many steps on both sides
}

// What rows of Ranks are of.
const (
	ByRank = "rank"
	ByRole = "role"
)

// RankRow is one rank, or the ranks of one role. Times of a role are means over its ranks.
type RankRow struct {
	ID        string   `json:"id"`   // the rank, or the role; empty: ranks without a role
	Role      string   `json:"role"` // of the rank; empty: none
	BaseRanks int64    `json:"base_ranks"`
	HeadRanks int64    `json:"head_ranks"`
	Base      *float64 `json:"base"` // median time of a step
	Head      *float64 `json:"head"`
	Delta     *float64 `json:"delta"`
	BaseWait  *float64 `json:"base_wait"` // mean time that it waits for others in a collective
	HeadWait  *float64 `json:"head_wait"`
	BaseLast  *float64 `json:"base_last"` // share of collectives in which it comes last, 0 to 1
	HeadLast  *float64 `json:"head_last"`
	Steps     int64    `json:"steps"`  // that could be compared one by one; 0: the sides have different numbers of them
	Slower    int64    `json:"slower"` // of these, that took longer on the head
}

// HeldUp is how much ranks wait for others, and for whom first. Shares are of the time of all ranks, means over the
// captures of a side.
type HeldUp struct {
	Base      float64 `json:"base"` // share that ranks wait
	Head      float64 `json:"head"`
	BaseFirst float64 `json:"base_first"` // of it, what begins with the rank that is waited for longest
	HeadFirst float64 `json:"head_first"`
	BaseRank  string  `json:"base_rank"` // that rank, in the first capture; empty: nobody waits
	HeadRank  string  `json:"head_rank"`
	Cause     string  `json:"cause"`  // what the head's does meanwhile; empty: not captured
	Slower    string  `json:"slower"` // the rank whose waiting grew most, where it is another one; empty: none
	Text      string  `json:"text"`   // one line; empty if waiting grew by less than 1 % of the time
}

// RankStep is one step of both runs: the rank that took longest.
type RankStep struct {
	Step     int64   `json:"step"` // number of the base's
	BaseRank string  `json:"base_rank"`
	Base     float64 `json:"base"`
	HeadRank string  `json:"head_rank"`
	Head     float64 `json:"head"`
	Delta    float64 `json:"delta"`
}

// MaxRankSteps bounds the steps that are listed, the first ones of more, and MaxRankRows the ranks.
const (
	MaxRankSteps = 1000
	MaxRankRows  = 16_384
)

func (r *Ranks) validate() error {
	if r == nil {
		return nil
	}
	if r.By != ByRank && r.By != ByRole || len(r.Rows) > MaxRankRows || len(r.Steps) > MaxRankSteps {
		return errors.New("comparison: ranks are not ones that explain writes")
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.BaseRanks < 0 || x.HeadRanks < 0 || x.Steps < 0 || x.Slower < 0 || x.Slower > x.Steps ||
			x.Base != nil && x.Head != nil && (x.Delta == nil || math.Abs(Value(x.Head)-Value(x.Base)-Value(x.Delta)) > closeEnough) {
			return fmt.Errorf("comparison: ranks: row %d is not valid", i)
		}
	}
	if h := r.Held; h != nil && (h.Base < 0 || h.Head < 0) {
		return errors.New("comparison: ranks: how long they are held up is not valid")
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if math.Abs(s.Head-s.Base-s.Delta) > closeEnough {
			return fmt.Errorf("comparison: ranks: step %d does not close", i)
		}
	}
	return nil
}
