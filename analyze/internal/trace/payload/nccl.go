// Package payload decodes what libraries and plugins write into single events beside their times: NCCL and Python's
// sampling into payloads of NVTX, NVML into JSON. It knows no tables.
package payload

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Head is the length in bytes of what precedes a payload of NVTX in exports of 2025 and 2026: domain, flags, schema and
// flags of 32 bits each, then the bytes of the payload and in all, of 64 bits each, in little endian. Schema is where
// the schema stands.
const (
	Head   = 32
	Schema = 8
)

// Names of the fields that NCCL's payloads are read for.
const (
	fieldComm  = "NCCL communicator ID"
	fieldRank  = "Rank"
	fieldWorld = "No. of ranks"
	fieldRoot  = "Root"
	fieldPeer  = "Peer rank"
	// MessageSize is the field of the bytes that one rank sends.
	MessageSize = "Message size [bytes]"
)

// MaxMessage is more bytes than one message has.
const MaxMessage = 1 << 50

// NCCL is what a payload says of a call of NCCL's.
type NCCL struct {
	Comm        uint64 // communicator: the same number in all ranks; 0 if the payload does not say
	Rank, World int64  // within the communicator; -1 if the payload does not say
	Peer        int64  // rank within the communicator of the root, or of the other side; -1 if there is none
	Bytes       int64  // of the message, as NCCL counts it: what one rank sends; -1 if the payload does not say
}

// field says where a number is in a payload.
type field struct {
	name   string
	offset int64
	bytes  int64
}

// Fields are the numbers in payloads, by domain and schema.
type Fields map[[2]int64][]field

// widths are the bytes of a number by its type in a schema.
var widths = map[int64]int64{5: 4, 18: 8, 22: 8}

// wanted are the fields that payloads are read for.
var wanted = []string{fieldComm, fieldRank, fieldWorld, fieldRoot, fieldPeer, MessageSize}

// Add notes where a schema has a field that is wanted.
func (f Fields) Add(domain, schema, kind, offset int64, name string) {
	if bytes := widths[kind]; slices.Contains(wanted, name) && bytes > 0 && offset >= 0 && offset < 1<<16 {
		key := [2]int64{domain, schema}
		if x := (field{strings.Clone(name), offset, bytes}); !slices.Contains(f[key], x) {
			f[key] = append(f[key], x)
		}
	}
}

// NCCL reads a payload of a domain; not ok if it is not one of NCCL's.
func (f Fields) NCCL(domain int64, b []byte) (c NCCL, ok bool) {
	c = NCCL{Rank: -1, World: -1, Peer: -1, Bytes: -1}
	if len(b) < Head {
		return c, false
	}
	for _, x := range f[[2]int64{domain, int64(binary.LittleEndian.Uint32(b[Schema:]))}] {
		at := Head + x.offset
		if at+x.bytes > int64(len(b)) {
			continue
		}
		v := uint64(binary.LittleEndian.Uint32(b[at:]))
		if x.bytes == 8 {
			v = binary.LittleEndian.Uint64(b[at:])
		}
		switch x.name {
		case fieldComm:
			c.Comm, ok = v, true
		case fieldRank:
			c.Rank = int64(v)
		case fieldWorld:
			c.World = int64(v)
		case fieldRoot, fieldPeer:
			c.Peer = int64(int32(v))
		case MessageSize:
			if v <= MaxMessage {
				c.Bytes, ok = int64(v), true
			}
		}
	}
	return c, ok
}
