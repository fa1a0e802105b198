package session

// The engine's work step by step: forward passes, CPU operations, parts of the model, batches.

const (
	nsPerMs = 1e6
	nsPerS  = 1e9
)

// Forward are the forward passes of one phase.
type Forward struct {
	Time   Sample // ns
	Tokens int64
}

// Steps are forward passes by phase, and CPU operations and parts of the model by name.
type Steps struct {
	Forward    map[string]*Forward
	AllForward Forward
	Throughput Series // tokens per second of forward time

	Operations map[Operation]*Sample // ns
	Components map[string]*Sample    // ns
	ModelType  string                // of typeWords, empty if not stated
	CUDAEvents *bool                 // whether forward times were taken with CUDA events, nil if not stated
}

// Operation is a CPU operation, and its phase if that is known.
type Operation struct{ Name, Phase string }

// entry is the value under a key, created if missing.
func entry[K comparable, V any](m *map[K]*V, key K) *V {
	v := (*m)[key]
	if v == nil {
		if *m == nil {
			*m = map[K]*V{}
		}
		v = new(V)
		(*m)[key] = v
	}
	return v
}

func (d *Data) takeForward(r *row) bool {
	at, ok1 := r.seconds(0)
	tokens, ok2 := r.count(2)
	ns, ok3 := r.duration(3, nsPerMs)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	for _, f := range []*Forward{&d.AllForward, entry(&d.Forward, word(phaseWords, r.text(1)))} {
		f.Time.add(ns)
		f.Tokens += tokens
	}
	d.Throughput.add(at, float64(tokens), ns/nsPerS)
	return true
}

func (d *Data) takeOperation(r *row) bool {
	ns, ok := r.duration(2, nsPerMs)
	if !ok {
		return false
	}
	name := word(operationWords, r.text(1))
	entry(&d.Operations, Operation{Name: name}).add(ns)
	if p := contextPhase(r.text(3)); p != "" {
		entry(&d.Operations, Operation{name, p}).add(ns)
	}
	return true
}

func (d *Data) takeComponent(r *row) bool {
	ns, ok := r.duration(2, nsPerMs)
	if ok {
		entry(&d.Components, word(componentWords, r.text(1))).add(ns)
	}
	return ok
}

// Batches are the decisions of the scheduler.
type Batches struct {
	Steps        int64
	Seqs, Tokens map[string]*Sample // utilisation by phase, "" for all: 0..1 of max_num_seqs, of max_num_batched_tokens
	Under        int64              // steps with a token utilisation below underUtilised
	Running      Sample             // requests
	Waiting      Sample
	Queued       int64 // steps at which some request waited
	MaxSeqs      Limit
	MaxTokens    Limit

	SeqsOverTime, TokensOverTime, RunningOverTime, WaitingOverTime Series
}

// underUtilised is profilemate's bound, 0..1, below which a batch uses too little of its step.
const underUtilised = 0.5

// Limit is a setting that every row repeats.
type Limit struct {
	value int64
	mixed bool
}

func (l *Limit) add(v int64) {
	l.mixed = l.mixed || l.value > 0 && v != l.value
	l.value = v
}

// Value is the setting, nil if it is not stated or if rows disagree.
func (l *Limit) Value() *int64 {
	if l.value <= 0 || l.mixed {
		return nil
	}
	return &l.value
}

func (d *Data) takeBatch(r *row) bool {
	at, ok1 := r.seconds(0)
	seqs, ok2 := r.count(1)
	tokens, ok3 := r.count(3)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	b := &d.Batches
	b.Steps++
	phase := word(phaseWords, r.text(5))
	use := func(by *map[string]*Sample, over *Series, limit *Limit, column int, n int64) (float64, bool) {
		most, ok := r.count(column)
		if !ok || most == 0 { // the scheduler's limit was not found: unknown, not 0
			return 0, false
		}
		limit.add(most)
		u := float64(n) / float64(most)
		entry(by, "").add(u)
		entry(by, phase).add(u)
		over.add(at, u, 1)
		return u, true
	}
	use(&b.Seqs, &b.SeqsOverTime, &b.MaxSeqs, 2, seqs)
	if u, ok := use(&b.Tokens, &b.TokensOverTime, &b.MaxTokens, 4, tokens); ok && u < underUtilised {
		b.Under++
	}
	if n, ok := r.count(6); ok {
		b.Running.add(float64(n))
		b.RunningOverTime.add(at, float64(n), 1)
	}
	if n, ok := r.count(7); ok {
		b.Waiting.add(float64(n))
		b.WaitingOverTime.add(at, float64(n), 1)
		if n > 0 {
			b.Queued++
		}
	}
	return true
}
