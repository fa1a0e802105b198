// Package ranks finds who waits for whom in a run of many processes: it matches the collectives of all ranks, aligns
// their clocks, and separates transfer from waiting. It knows neither traces nor reports, and imports only the standard
// library.
//
// The steps are:
//
//  1. [Match] finds which calls of which ranks are one collective
//  2. [Align] puts the clocks of all hosts on the first one, by the ends of matched collectives
//  3. [Study] sums up how long each rank waited, who came last, how late, and what it had done meanwhile
package ranks

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Track is the blocking communication of one rank: of a process, or of one of its devices if kernels communicate.
type Track struct {
	Rank   int64  `json:"rank"`   // -1 unknown
	World  int64  `json:"world"`  // number of ranks of the run; -1 unknown
	From   string `json:"from"`   // source of the rank: mpi_ranks, environment, nvtx, name, flag; empty: none
	PID    int64  `json:"pid"`    // -1 unknown
	Device int64  `json:"device"` // deviceId; -1: the calls are of the host (MPI)

	Kinds []string `json:"kinds"` // of collectives, see [Synchronising]
	Comms []string `json:"comms"` // communicators, by an identifier that all ranks share
	Acts  []string `json:"acts"`  // what a rank does between collectives
	Calls []Call   `json:"-"`     // by start
	Local []int32  `json:"-"`     // by communicator: this rank's rank in it, plus 1; 0 unknown. Nil: all unknown
	// Total is the number of collectives in each communicator, if the track holds a sample of them; the last entry is
	// for those without a communicator. Nil: the track holds all.
	Total []int64 `json:"-"`

	parts []Part
	kept  []int64 // of Total
}

// Call is one blocking call of a rank: a collective, a send or a receive. Times are in ns on the clock of its host.
// Ranks are those of its communicator, or those of the run if it is unknown.
type Call struct {
	Start, End int64
	Hidden     int64 // ns of it in which the rank also computed: waiting there costs nothing
	Kind       int32 // index into Kinds
	Comm       int32 // index into Comms; -1 unknown
	Peer       int32 // rank of the root, or of the other side, plus 1; 0 unknown
	Source     int32 // of a SendRecv: the rank it receives from, plus 1; Peer is the one it sends to
	Tag        int32 // of a send or receive, plus 1; 0 unknown or any
	Seq        int32 // of a collective in a sample: its number in its communicator, from 0
	Left       bool  // the sample left out the calls right before it

	from, to int32 // indexes into parts
}

// Part is time that a rank spent on one activity between the end of a collective and the start of the next.
type Part struct {
	Act  int32 // index into Acts
	Time int64 // ns
}

// HostIn begins the acts of a device whose host is late; what the launching thread does follows.
const (
	HostIn  = "idle: host in "
	OnNoCPU = "no CPU"
)

// MaxCalls is how many collectives of a rank are kept, the first ones: 1,000 ranks then fit into memory.
const MaxCalls = 1 << 14

// Synchronising lists the kinds of collective that nobody can finish before all have begun. They separate waiting from
// transfer, and their ends align clocks.
var Synchronising = []string{"AllReduce", "AllGather", "ReduceScatter", "AllToAll", "Barrier"}

// synchronises reports whether nobody can finish call i before all have begun it.
func (t *Track) synchronises(i int) bool {
	return slices.Contains(Synchronising, t.Kinds[t.Calls[i].Kind])
}

// Add appends a call with what the rank did since the end of the call before.
func (t *Track) Add(c Call, parts []Part) {
	c.from = int32(len(t.parts))
	t.parts = append(t.parts, parts...)
	c.to = int32(len(t.parts))
	t.Calls = append(t.Calls, c)
}

// Parts returns what the rank did between the end of the call before and the start of call i; nil if unknown. The times
// add up to the time between.
func (t *Track) Parts(i int) []Part { return t.parts[t.Calls[i].from:t.Calls[i].to] }

// Communicator returns the index of a communicator with this identifier in which the track has this rank; -1 if
// unknown.
func (t *Track) Communicator(name string, local int64) int32 {
	c := lists.Place[int32](&t.Comms, name)
	if local >= 0 && local < math.MaxInt32 {
		*lists.At(&t.Local, c) = int32(local) + 1
	}
	return c
}

// local is the track's rank in a communicator; -1 unknown.
func (t *Track) local(c int32) int64 {
	if c < 0 || int(c) >= len(t.Local) {
		return -1
	}
	return int64(t.Local[c]) - 1
}

// head is a track without its methods, written without its calls.
type head Track

// trackJSON is a track as written: numbers as differences, kinds and communicators as runs of value and count.
type trackJSON struct {
	head
	Gap    []int64 `json:"gap"`  // start minus the end of the call before; of the first, the start
	Dur    []int64 `json:"dur"`  // ns
	Kind   []int64 `json:"kind"` // runs
	Comm   []int64 `json:"comm"` // runs
	Local  []int32 `json:"local,omitempty"`
	Peer   []int64 `json:"peer,omitempty"` // runs; these four are omitted if all are 0
	Source []int64 `json:"source,omitempty"`
	Tag    []int64 `json:"tag,omitempty"`
	Hidden []int64 `json:"hidden,omitempty"`
	Parts  []int64 `json:"parts"`
	Count  []int64 `json:"part_counts"` // runs
	Total  []int64 `json:"total,omitempty"`
	Seq    []int64 `json:"seq,omitempty"`  // of a sample: runs of differences, of all calls
	Left   []int64 `json:"left,omitempty"` // of a sample: runs
}

// MarshalJSON writes the track in columns.
func (t *Track) MarshalJSON() ([]byte, error) {
	out := trackJSON{head: head(*t), Gap: []int64{}, Dur: []int64{}, Kind: []int64{}, Comm: []int64{}, Parts: []int64{},
		Count: []int64{}, Total: t.Total, Local: t.Local}
	for _, list := range []*[]string{&out.Kinds, &out.Comms, &out.Acts} {
		*list = append([]string{}, *list...) // never null
	}
	var end, seq int64
	unit := t.unit()
	for i := range t.Calls {
		c := &t.Calls[i]
		out.Gap, out.Dur = append(out.Gap, (c.Start-end)/unit), append(out.Dur, (c.End-c.Start)/unit)
		out.Kind, out.Comm = lists.AddRun(out.Kind, int64(c.Kind)), lists.AddRun(out.Comm, int64(c.Comm))
		out.Count = lists.AddRun(out.Count, int64(c.to-c.from))
		out.Peer, out.Source = lists.AddRun(out.Peer, int64(c.Peer)), lists.AddRun(out.Source, int64(c.Source))
		out.Tag, out.Hidden = lists.AddRun(out.Tag, int64(c.Tag)), lists.AddRun(out.Hidden, c.Hidden/unit)
		if t.Total != nil {
			out.Seq, seq = lists.AddRun(out.Seq, int64(c.Seq)-seq), int64(c.Seq)
			left := int64(0)
			if c.Left {
				left = 1
			}
			out.Left = lists.AddRun(out.Left, left)
		}
		for _, p := range t.Parts(i) {
			out.Parts = append(out.Parts, int64(p.Act), p.Time/unit)
		}
		end = c.End
	}
	for _, list := range []*[]int64{&out.Peer, &out.Source, &out.Tag, &out.Hidden} {
		if len(*list) == 2 && (*list)[0] == 0 {
			*list = nil
		}
	}
	return json.Marshal(out)
}

// unit is the unit in which times are written, in ns.
func (t *Track) unit() int64 {
	if t.Total != nil {
		return grain
	}
	return 1
}

// UnmarshalJSON reads columns; columns that do not fit together are an error.
func (t *Track) UnmarshalJSON(b []byte) error {
	var in trackJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	n := len(in.Gap)
	*t = Track(in.head)
	t.Local = in.Local
	if n > MaxCalls || len(in.Dur) != n || len(in.Parts)%2 != 0 || len(in.Local) > len(in.Comms) ||
		slices.ContainsFunc(in.Local, func(v int32) bool { return v < 0 }) {
		return fmt.Errorf("%d collectives with %d durations, %d ranks in %d communicators", n, len(in.Dur), len(in.Local), len(in.Comms))
	}
	var err error
	column := func(list []int64, least, most int64) []int64 {
		out, bad := lists.OfRuns(list, n, least, most)
		err = errors.Join(err, bad)
		return out
	}
	optional := func(list []int64, least, most int64) []int64 {
		if len(list) == 0 {
			return make([]int64, n)
		}
		return column(list, least, most)
	}
	kind, comm := column(in.Kind, 0, int64(len(in.Kinds))-1), column(in.Comm, -1, int64(len(in.Comms))-1)
	count, hidden := column(in.Count, 0, int64(len(in.Parts)/2)), optional(in.Hidden, 0, maxTime/grain)
	peer, source := optional(in.Peer, 0, math.MaxInt32), optional(in.Source, 0, math.MaxInt32)
	tag := optional(in.Tag, 0, math.MaxInt32)
	seq, left := make([]int64, n), make([]int64, n)
	if t.Total = in.Total; t.Total != nil {
		if len(t.Total) != len(t.Comms)+1 || slices.ContainsFunc(t.Total, func(v int64) bool { return v < 0 || v > 1<<40 }) {
			return fmt.Errorf("a sample of %v collectives", t.Total)
		}
		seq, left = column(in.Seq, math.MinInt32, math.MaxInt32), column(in.Left, 0, 1)
	}
	if err != nil {
		return err
	}
	unit := t.unit()
	var end, number int64
	t.Calls, t.parts = make([]Call, n), make([]Part, 0, len(in.Parts)/2)
	for i := range n {
		c := Call{Start: end + in.Gap[i]*unit, Kind: int32(kind[i]), Comm: int32(comm[i]), Peer: int32(peer[i]),
			Source: int32(source[i]), Tag: int32(tag[i]), Hidden: hidden[i] * unit, from: int32(len(t.parts))}
		number += seq[i]
		c.End, c.Left, c.Seq = c.Start+in.Dur[i]*unit, left[i] == 1, int32(number)
		if in.Gap[i] > maxTime/unit || in.Gap[i] < -maxTime/unit || in.Dur[i] < 0 || in.Dur[i] > maxTime/unit ||
			c.Start < -maxTime || c.End > maxTime || number < 0 || number > math.MaxInt32 {
			return fmt.Errorf("collective %d has a time or a number that cannot be", i)
		}
		for range count[i] {
			k := 2 * len(t.parts)
			if k >= len(in.Parts) || in.Parts[k] < 0 || in.Parts[k] >= int64(len(in.Acts)) || in.Parts[k+1] < 0 || in.Parts[k+1] > maxTime/unit {
				return fmt.Errorf("collective %d has parts that are not there", i)
			}
			t.parts = append(t.parts, Part{int32(in.Parts[k]), in.Parts[k+1] * unit})
		}
		c.to = int32(len(t.parts))
		t.Calls[i], end = c, c.End
	}
	if t.Total != nil {
		t.count()
	}
	return nil
}

// maxTime exceeds any time of a capture (73 years), and keeps sums of times from overflowing.
const maxTime = math.MaxInt64 / 4
