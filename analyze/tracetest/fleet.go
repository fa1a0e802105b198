package tracetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Fleet is a run of many ranks that compute and then meet in collectives, step after step, one of them late in some
// steps. [Fleet.Run] plays it, and [FleetRank.Build] makes the export of one rank. The same fleet gives the same run.
type Fleet struct {
	Ranks       int
	PerHost     int   // ranks on a host, which share a clock; 0: all
	Steps       int   // of one all-reduce after each layer
	Layers      int   // collectives in a step; 0: 1
	Compute     int64 // ns that a rank computes before a collective; 0: 1 ms
	Transfer    int64 // ns that a collective takes once all are there; 0: 100 µs
	Jitter      int64 // standard deviation of the computing, ns
	EndJitter   int64 // most that the ends of a collective are apart, ns
	Offset      int64 // clocks of hosts are up to this far off, ns
	Drift       float64
	Slow        int     // the late rank
	SlowBy      float64 // share of the computing of a step that it takes longer
	SlowSteps   float64 // share of the steps in which it does
	Seed        uint64
	NoPayload   bool // NCCL tells neither communicator nor rank
	SessionGaps bool // sessions of one host begin at different moments
}

// FleetRank is what one rank did. Times are on the clock of its session: since the session began, by its host's clock.
type FleetRank struct {
	Rank, World int
	Host        int
	Session     int64       // when the session began, by the host's clock, ns since 1970
	Computed    []FleetSpan // before each collective
	Met         []FleetSpan // the collectives
	fleet       *Fleet
}

// FleetSpan is a stretch of time, ns.
type FleetSpan struct{ Start, End int64 }

// fleetEpoch is when the run begins, ns since 1970.
const fleetEpoch = 1_700_000_000_000_000_000

// Run plays the fleet.
func (f Fleet) Run() []FleetRank {
	f.Layers, f.Compute, f.Transfer = int(or(int64(f.Layers), 1)), or(f.Compute, 1_000_000), or(f.Transfer, 100_000)
	if f.PerHost == 0 {
		f.PerHost = f.Ranks
	}
	rng := rand.New(rand.NewPCG(f.Seed, 22))
	ranks := make([]FleetRank, f.Ranks)
	type clock struct {
		offset int64
		drift  float64
	}
	clocks := make([]clock, (f.Ranks-1)/f.PerHost+1)
	for i := range clocks {
		if i > 0 {
			clocks[i] = clock{int64((rng.Float64()*2 - 1) * float64(f.Offset)), (rng.Float64()*2 - 1) * f.Drift}
		}
	}
	for i := range ranks {
		r := &ranks[i]
		*r = FleetRank{Rank: i, World: f.Ranks, Host: i / f.PerHost, fleet: &f}
		r.Session = fleetEpoch + clocks[r.Host].offset
		if f.SessionGaps {
			r.Session += int64(i%f.PerHost) * 1_000_003
		}
	}
	// read is a true time on the clock of a rank's session.
	read := func(r *FleetRank, t int64) int64 {
		c := clocks[r.Host]
		return t + fleetEpoch + c.offset + int64(c.drift*float64(t)) - r.Session
	}
	free, arrive := make([]int64, f.Ranks), make([]int64, f.Ranks) // true times
	for i := range free {
		free[i] = 1_000_000_000
	}
	for range f.Steps {
		slow := rng.Float64() < f.SlowSteps
		for range f.Layers {
			last := int64(0)
			for i := range ranks {
				busy := f.Compute + int64(rng.NormFloat64()*float64(f.Jitter))
				if slow && i == f.Slow {
					busy += int64(f.SlowBy * float64(f.Compute))
				}
				arrive[i] = free[i] + max(1, busy)
				last = max(last, arrive[i])
			}
			for i := range ranks {
				r := &ranks[i]
				end := last + f.Transfer
				if f.EndJitter > 0 {
					end += rng.Int64N(f.EndJitter)
				}
				r.Computed = append(r.Computed, FleetSpan{read(r, free[i]), read(r, arrive[i])})
				r.Met = append(r.Met, FleetSpan{read(r, arrive[i]), read(r, end)})
				free[i] = end
			}
		}
	}
	return ranks
}

// Build makes the export of a rank: a kernel that computes, an NCCL kernel for each collective, and the ranges of NCCL
// around the calls that launched them.
func (r *FleetRank) Build(opts ...Option) *Builder {
	b := New(opts...)
	r.AddTo(b, int64(1000+r.Rank), 0)
	b.Row("TARGET_INFO_SESSION_START_TIME", Row{"utcEpochNs": Int(r.Session), "utcTime": Text("2023-11-14T22:13:20"),
		"localTime": Text("2023-11-14T22:13:20")})
	return b
}

// AddTo adds the rank's process to an export, working on a device.
func (r *FleetRank) AddTo(b *Builder, pid, device int64) {
	if len(b.gpus) == 0 {
		for d := range int64(max(1, min(r.fleet.PerHost, 16))) {
			b.GPU(GPU{ID: d, UUID: fmt.Sprintf("00000000-0000-%04x-0000-%012x", r.Host, d)})
		}
	}
	th := b.Process(pid, "python").Thread(pid, "python")
	place := Place{Device: device}
	if !r.fleet.NoPayload {
		b.NCCLInit(th, r.Computed[0].Start-50_000, r.Computed[0].Start-40_000, fleetComm, r.World, r.Rank)
	}
	for i, c := range r.Computed {
		m := r.Met[i]
		if i%r.fleet.Layers == 0 {
			th.Range("step", c.Start-2_000, r.Met[i+r.fleet.Layers-1].End+100)
		}
		th.Launch("void gemm_kernel<float>(float*, float*)", c.Start-1_500, c.Start-500,
			Kernel{Place: place, Start: c.Start, End: c.End})
		if !r.fleet.NoPayload {
			b.NCCL(th, "ncclAllReduce", m.Start-1_400, m.Start-300, fleetComm)
		}
		th.Launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", m.Start-1_300, m.Start-400,
			Kernel{Place: place, Start: m.Start, End: m.End})
	}
}

// Schemas of NCCL's payloads as exports number them.
const (
	commInitSchema  = 16777218
	allReduceSchema = 16777223
	peerSchema      = 16777224
	rootSchema      = 16777225
	ncclDomain      = 1
)

// fleetComm is the communicator of a fleet.
const fleetComm = 0x5eed5eed00000001

// NCCLInit adds the range in which a process becomes a rank of a communicator.
func (b *Builder) NCCLInit(th *Thread, start, end int64, comm uint64, world, rank int) {
	body := make([]byte, 24)
	binary.LittleEndian.PutUint64(body, comm)
	binary.LittleEndian.PutUint32(body[8:], uint32(world))
	binary.LittleEndian.PutUint32(body[12:], uint32(rank))
	b.nccl(th, "ncclCommInitRank", start, end, commInitSchema, body)
}

// NCCL adds the range of a collective, of 1 MiB.
func (b *Builder) NCCL(th *Thread, text string, start, end int64, comm uint64) {
	body := make([]byte, 24)
	binary.LittleEndian.PutUint64(body, comm)
	binary.LittleEndian.PutUint64(body[8:], 1<<20)
	b.nccl(th, text, start, end, allReduceSchema, body)
}

// NCCLTo adds the range of a send, a receive or a call with a root, with the rank of the other side in the communicator.
func (b *Builder) NCCLTo(th *Thread, text string, start, end int64, comm uint64, rank int) {
	body := make([]byte, 24)
	binary.LittleEndian.PutUint64(body, comm)
	binary.LittleEndian.PutUint64(body[8:], 1<<20)
	binary.LittleEndian.PutUint32(body[16:], uint32(rank))
	schema := int64(peerSchema)
	if text == "ncclBroadcast" || text == "ncclReduce" {
		schema = rootSchema
	}
	b.nccl(th, text, start, end, schema, body)
}

func (b *Builder) nccl(th *Thread, text string, start, end, schema int64, body []byte) {
	if !b.schemas {
		ncclSchemas(b)
		b.schemas = true
	}
	b.NVTX(NVTX{Thread: th, Type: PushPop, Start: start, End: end, Text: text, ByID: true, Set: Row{
		"domainId": Int(ncclDomain), "binaryData": Blob(payload(ncclDomain, schema, body)),
	}})
}

// payload is one of NVTX as exports hold it, in little endian: domain, flags, schema, flags (32 bits each), bytes of the
// payload and in all (64 bits each), then the payload.
func payload(domain, schema int64, body []byte) []byte {
	const headBytes = 32
	head := make([]byte, headBytes)
	binary.LittleEndian.PutUint32(head, uint32(domain))
	binary.LittleEndian.PutUint32(head[8:], uint32(schema))
	binary.LittleEndian.PutUint64(head[16:], uint64(len(body)))
	binary.LittleEndian.PutUint64(head[24:], uint64(headBytes+len(body)))
	return append(head, body...)
}

// ncclSchemas declares the fields of the payloads.
func ncclSchemas(b *Builder) {
	const u64, size, i32 = 18, 22, 5 // types of NVTX
	field := func(schema, at, kind int64, name string, offset int64) {
		b.Row("NVTX_PAYLOAD_SCHEMA_ENTRIES", Row{"domainId": Int(ncclDomain), "schemaId": Int(schema), "idx": Int(at),
			"type": Int(kind), "name": Text(name), "offset": optInt(offset)})
	}
	for _, s := range []int64{commInitSchema, allReduceSchema, peerSchema, rootSchema} {
		b.Row("NVTX_PAYLOAD_SCHEMAS", Row{"domainId": Int(ncclDomain), "schemaId": Int(s), "type": Int(1),
			"numEntries": Int(3), "payloadSize": Int(24)})
		field(s, 0, u64, "NCCL communicator ID", 0)
	}
	field(commInitSchema, 1, i32, "No. of ranks", 8)
	field(commInitSchema, 2, i32, "Rank", 12)
	field(commInitSchema, 3, i32, "CUDA device", 16)
	for _, s := range []int64{allReduceSchema, peerSchema, rootSchema} {
		field(s, 1, size, "Message size [bytes]", 8)
	}
	field(peerSchema, 2, i32, "Peer rank", 16)
	field(rootSchema, 2, i32, "Root", 16)
}
