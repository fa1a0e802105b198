package serverlog

// Batch is how full one step of the scheduler was.
type Batch struct {
	Tokens, Most uint32 // that were batched, and that could have been
}

// maxBatches are kept, the first ones.
const maxBatches = 1 << 22

// maxTransfers of one line are believed: sums stay whole.
const maxTransfers = 1 << 32

// Transfers sum up the lines on KV caches that were moved between servers, as vLLM's NIXL connector logs them.
type Transfers struct {
	Lines, Count int64
	Seconds      float64 // of all transfers, one after the other
	Bytes        float64
}

// scheduled takes a debug line of vLLM's scheduler, "scheduled_new_reqs=1, scheduled_cached_reqs=7,
// num_batched_tokens=519, max_num_batched_tokens=8192".
func (r *reader) scheduled(m []byte) bool {
	tokens, _, ok := digits(value(m, "num_batched_tokens"))
	most, _, okMost := digits(value(m, "max_num_batched_tokens"))
	if !ok || !okMost || most == 0 {
		r.d.malformed++
		return false
	}
	if len(r.d.Batches) < maxBatches {
		r.d.Batches = append(r.d.Batches, Batch{Tokens: narrow(tokens), Most: narrow(most)})
	}
	return true
}

// transfers takes what follows "KV Transfer metrics: ", where megabytes are 2^20 bytes:
//
//	Num successful transfers=4, Avg xfer time (ms)=2.5, P90 xfer time (ms)=3.1, Avg post time (ms)=0.4, P90 post time
//	(ms)=0.6, Avg MB per transfer=12.5, Throughput (MB/s)=5000.0, Avg number of descriptors=64.0
func (r *reader) transfers(m []byte) bool {
	n, ok := wholeAfter(m, "Num successful transfers=")
	millis, timed := numberAfter(m, "Avg xfer time (ms)=")
	size, sized := numberAfter(m, "Avg MB per transfer=")
	if !ok || n > maxTransfers || n > 0 && (!timed || !sized) {
		r.d.malformed++
		return false
	}
	t := &r.d.Transfers
	t.Lines++
	t.Count += n
	t.Seconds += float64(n) * millis / 1e3
	t.Bytes += float64(n) * size * (1 << 20)
	return true
}
