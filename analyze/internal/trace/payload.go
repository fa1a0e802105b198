package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// NCCLCall is a range that NCCL put around one of its own functions, with what its payload says.
type NCCLCall struct {
	Start, End int64
	Thread     int64  // globalTid
	Op         string // which of the functions that one kernel runs: send, recv or alltoall; empty: another
	payload.NCCL
	row int64 // its rowid
}

// ncclOps are the functions of NCCL that kernels of one name run.
var ncclOps = map[string]string{"ncclsend": "send", "ncclrecv": "recv", "ncclalltoall": "alltoall"}

// loadPayloadFields reads where the payloads of ranges hold what is wanted of them.
func (l *loader) loadPayloadFields() (payload.Fields, error) {
	fields := payload.Fields{}
	err := l.scanRole(RolePayload, []string{"domainId", "schemaId", "type", "name", "offset"}, func(row []cell) error {
		domain, ok1 := row[0].Whole()
		schema, ok2 := row[1].Whole()
		kind, ok3 := row[2].Whole()
		offset, _ := row[4].Whole() // NULL is 0
		if name, _ := l.text(&row[3]); ok1 && ok2 && ok3 {
			fields.Add(domain, schema, kind, offset, name)
		}
		return nil
	})
	return fields, err
}

// payloadColumns are those of a table of ranges that hold payloads.
func payloadColumns(info source.Table) []string {
	if binary := info.Column("binaryData"); binary != "" {
		return []string{info.Column("domainId"), binary}
	}
	return nil
}

// ncclCall is the range of a row of NVTX_EVENTS as its payload describes it, if that is one of NCCL's; own are the
// cells of the columns above.
func (l texts) ncclCall(fields payload.Fields, row, own []cell, id int64) (c NCCLCall, ok bool) {
	start, ok1 := row[0].Whole()
	end, ok2 := row[1].Whole()
	tid, ok3 := row[3].Whole()
	if !ok1 || !ok2 || !ok3 || !sound(start, end) {
		return c, false
	}
	domain, _ := own[0].Whole()
	said, ok := fields.NCCL(domain, []byte(textOf(&own[1])))
	if !ok {
		return c, false
	}
	return NCCLCall{start, end, tid, ncclOps[strings.ToLower(textOfRange(l, row))], said, id}, true
}

// inOrder are the calls of all sinks by start, outer ones first, equal ones in the order of their rows.
func inOrder(parts ...[]NCCLCall) []NCCLCall {
	all := slices.Concat(parts...)
	lists.Sort(all, func(a, b NCCLCall) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.row, b.row))
	})
	return all
}

// ncclRanks are the ranks of processes in the largest communicator that each created, where it created that once: a
// process with several devices is several ranks.
func ncclRanks(calls []NCCLCall) map[int64]Rank {
	largest, times := map[int64]Rank{}, map[int64]int{}
	for i := range calls {
		c := &calls[i]
		proc := c.Thread &^ tidBits
		if !validRank(c.Rank) || c.World <= c.Rank || c.World > maxRank {
			continue
		}
		switch known, ok := largest[proc]; {
		case !ok || c.World > known.World:
			largest[proc], times[proc] = Rank{c.Rank, c.World, "nccl"}, 1
		case c.World == known.World && c.Rank != known.Rank:
			times[proc]++
		}
	}
	for proc, n := range times {
		if n > 1 {
			delete(largest, proc)
		}
	}
	return largest
}
