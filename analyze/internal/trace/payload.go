package trace

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// NCCLCall is a range that NCCL put around one of its own functions, with what its payload says.
type NCCLCall struct {
	Start, End  int64
	Thread      int64  // globalTid
	Comm        uint64 // communicator: the same number in all ranks; 0 where the payload does not say
	Rank, World int64  // within the communicator; -1 where the payload does not say
	Bytes       int64  // of the message, as NCCL counts it: what one rank sends; -1 where the payload does not say
}

// payloadField says where a number is in a payload.
type payloadField struct {
	name   string
	offset int64
	bytes  int64
}

// payloadFields are the numbers in payloads, by domain and schema.
type payloadFields map[[2]int64][]payloadField

// Types of payload fields, and bytes of the head of a payload, as exports of 2025 and 2026 write them: domain, flags,
// schema and flags of 32 bits each, then the bytes of the payload and in all, of 64 bits each, in little endian.
const (
	payloadHead   = 32
	payloadSchema = 8
)

var payloadBytes = map[int64]int64{5: 4, 18: 8, 22: 8}

// Names of the fields that NCCL's payloads are read for.
const (
	fieldComm    = "NCCL communicator ID"
	fieldRank    = "Rank"
	fieldWorld   = "No. of ranks"
	fieldMessage = "Message size [bytes]"
)

// loadPayloadFields reads where the payloads of ranges hold what is wanted of them.
func (l *loader) loadPayloadFields() (payloadFields, error) {
	fields := payloadFields{}
	err := l.scanRole(RolePayload, []string{"domainId", "schemaId", "type", "name", "offset"}, func(row []cell) error {
		domain, ok1 := row[0].Whole()
		schema, ok2 := row[1].Whole()
		kind, ok3 := row[2].Whole()
		offset, _ := row[4].Whole() // NULL is 0
		name, _ := l.text(&row[3])
		switch name {
		case fieldComm, fieldRank, fieldWorld, fieldMessage:
		default:
			return nil
		}
		if bytes := payloadBytes[kind]; ok1 && ok2 && ok3 && bytes > 0 && offset >= 0 && offset < 1<<16 {
			key := [2]int64{domain, schema}
			if f := (payloadField{strings.Clone(name), offset, bytes}); !slices.Contains(fields[key], f) {
				fields[key] = append(fields[key], f)
			}
		}
		return nil
	})
	return fields, err
}

// columns are those of a table of ranges that hold payloads.
func (f payloadFields) columns(info source.Table) []string {
	if binary := info.Column("binaryData"); binary != "" {
		return []string{info.Column("domainId"), binary}
	}
	return nil
}

// ncclCall is the range of a row of NVTX_EVENTS as its payload describes it, if that is one of NCCL's. own are the cells
// of the columns above.
func (f payloadFields) ncclCall(row, own []cell) (c NCCLCall, ok bool) {
	if own[1].Kind != pages.Blob && own[1].Kind != pages.Text {
		return c, false
	}
	start, ok1 := row[0].Whole()
	end, ok2 := row[1].Whole()
	tid, ok3 := row[3].Whole()
	domain, _ := own[0].Whole()
	b := []byte(own[1].S)
	if !ok1 || !ok2 || !ok3 || !sound(start, end) || len(b) < payloadHead {
		return c, false
	}
	schema := int64(binary.LittleEndian.Uint32(b[payloadSchema:]))
	c = NCCLCall{Start: start, End: end, Thread: tid, Rank: -1, World: -1, Bytes: -1}
	for _, field := range f[[2]int64{domain, schema}] {
		at := payloadHead + field.offset
		if at+field.bytes > int64(len(b)) {
			continue
		}
		v := uint64(binary.LittleEndian.Uint32(b[at:]))
		if field.bytes == 8 {
			v = binary.LittleEndian.Uint64(b[at:])
		}
		switch field.name {
		case fieldComm:
			c.Comm, ok = v, true
		case fieldRank:
			c.Rank = int64(v)
		case fieldWorld:
			c.World = int64(v)
		case fieldMessage:
			if v <= maxMessage {
				c.Bytes, ok = int64(v), true
			}
		}
	}
	return c, ok
}

// ncclRow is a call with the row that says so.
type ncclRow struct {
	call NCCLCall
	row  int64 // its rowid
}

// inOrder are the calls of all sinks by start, outer ones first, equal ones in the order of their rows.
func inOrder(lists ...[]ncclRow) []NCCLCall {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b ncclRow) int {
		return cmp.Or(cmp.Compare(a.call.Start, b.call.Start), cmp.Compare(b.call.End, a.call.End),
			cmp.Compare(a.row, b.row))
	})
	return each(all, func(r ncclRow) NCCLCall { return r.call })
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
