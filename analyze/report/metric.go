package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Unit strings of metrics and columns: base units only.
const (
	Nanoseconds = "ns"
	Bytes       = "bytes"
	Count       = "count"
	Ratio       = "ratio" // 0..1
	PerSecond   = "per_second"
	BytesPerSec = "bytes_per_second" // of table columns only; a metric says per_second, and what is counted in its id
	Flop        = "flop"
	Watts       = "watts"
	Joules      = "joules"
	Money       = "money"           // in the currency of --gpu-price
	FlopPerSec  = "flop_per_second" // of charts only
)

// Direction says which way is good.
type Direction string

const (
	Lower  Direction = "lower"
	Higher Direction = "higher"
	None   Direction = "none"
)

func (d Direction) Valid() bool { return d == Lower || d == Higher || d == None }

// Noise says how a metric behaves if nothing changed: exact values repeat, noisy ones do not.
type Noise string

const (
	Exact Noise = "exact"
	Noisy Noise = "noisy"
)

func (n Noise) Valid() bool { return n == Exact || n == Noisy }

// Scale says how a metric behaves when the capture is twice as long: a total doubles, the others stay as they are.
type Scale string

const (
	Total   Scale = "total"    // a sum, a count or an extreme over the capture: doubles, or grows, with its length
	PerUnit Scale = "per_unit" // of one unit of work (step)
	Level   Scale = "level"    // a ratio, a rate, a setting or a size that holds throughout the capture
	Event   Scale = "event"    // a statistic of single events, such as the median duration of a kernel
)

func (s Scale) Valid() bool { return s == Total || s == PerUnit || s == Level || s == Event }

// Lifecycle of a metric id: a stable one is a contract.
type Lifecycle string

const (
	Stable       Lifecycle = "stable"
	Experimental Lifecycle = "experimental"
)

func (l Lifecycle) Valid() bool { return l == Stable || l == Experimental }

// MetricDef describes a metric in every report. Sections declare the metrics they emit.
type MetricDef struct {
	ID     string    `json:"id"`
	Unit   string    `json:"unit"`
	Better Direction `json:"better"`
	Assume Noise     `json:"assume"`
	Scale  Scale     `json:"scale"`
	Merge  Merge     `json:"-"` // how it is merged over the captures of a run
	// it can carry a summary, so that a rule may name a statistic of it: kernel.duration.p99
	Stats     bool      `json:"stats"`
	Steady    bool      `json:"-"`         // a finding quotes it, so that it exists of the steady part too, as steady.ID
	Lifecycle Lifecycle `json:"lifecycle"` // "" is Stable
	// every set of labels it can carry, each joined by commas; "" stands for the metric without labels, and so does nil
	Labels   []string `json:"labels"`
	Meaning  string   `json:"meaning"`  // one sentence: the counted quantity, and its scope
	Sections []string `json:"sections"` // that emit it; nil in a section's own declaration
}

// Define declares a metric of one value and no labels.
func Define(id, unit string, better Direction, assume Noise, scale Scale, merge Merge, meaning string) MetricDef {
	return MetricDef{ID: id, Unit: unit, Better: better, Assume: assume, Scale: scale, Merge: merge, Meaning: meaning}
}

// By names every set of labels that the metric can carry, each joined by commas; "" is the metric without labels.
func (d MetricDef) By(labels ...string) MetricDef {
	d.Labels = labels
	return d
}

// Summarised says that the metric can carry a summary.
func (d MetricDef) Summarised() MetricDef {
	d.Stats = true
	return d
}

// Quoted says that findings quote the metric: of the steady part it is a metric of its own.
func (d MetricDef) Quoted() MetricDef {
	d.Steady = true
	return d
}

// Labels are the dimensions of a metric, never nil in a written report. encoding/json writes them sorted by key.
type Labels map[string]string

// String is a canonical text of the labels, for sorting and as a map key: a=1,b=2.
func (l Labels) String() string {
	if len(l) == 0 {
		return ""
	}
	keys := make([]string, 0, 4) // as a rule; this is asked for thousands of metrics
	for k := range l {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b := make([]byte, 0, 128)
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, k...), '='), l[k]...)
	}
	return string(b)
}

// Keys are the names of the dimensions, sorted and joined by commas, as [MetricDef.Labels] has them.
func (l Labels) Keys() string { return strings.Join(slices.Sorted(maps.Keys(l)), ",") }

// Clone copies labels; what is copied is never nil.
func (l Labels) Clone() Labels {
	out := make(Labels, len(l))
	maps.Copy(out, l)
	return out
}

// Metric is one number with everything a comparison needs to know of it.
type Metric struct {
	ID        string     `json:"id"`
	Labels    Labels     `json:"labels"`
	Value     *float64   `json:"value"` // null when it cannot be known; integers up to 2^53 are exact
	Unit      string     `json:"unit"`
	Better    Direction  `json:"better"`
	Assume    Noise      `json:"assume"`
	Scale     Scale      `json:"scale"`
	Group     string     `json:"group,omitempty"` // id of the kind of unit that the value is of: see UnitGroup
	N         int64      `json:"n"`               // observations behind the value
	Summary   *Summary   `json:"summary"`         // distribution of the observations, if there is one
	Histogram *Histogram `json:"histogram,omitempty"`
	Coverage  *float64   `json:"coverage,omitempty"` // share of the data behind the value, where not all of it
	Source    Source     `json:"source"`
	Lifecycle Lifecycle  `json:"lifecycle"`
}

// Source says where a number came from.
type Source struct {
	Tables  []string `json:"tables"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	Query   string   `json:"query,omitempty"`
}

// Summary describes n observations. Percentiles interpolate linearly between closest ranks (numpy's default);
// Stddev is the population's.
type Summary struct {
	N      int64   `json:"n"`
	Min    float64 `json:"min"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	Stddev float64 `json:"stddev"`
}

// Statistics of a summary, by the names that rules and columns have for them.
var Statistics = map[string]func(s *Summary) float64{
	"mean":   func(s *Summary) float64 { return s.Mean },
	"stddev": func(s *Summary) float64 { return s.Stddev },
	"min":    func(s *Summary) float64 { return s.Min },
	"p50":    func(s *Summary) float64 { return s.P50 },
	"p90":    func(s *Summary) float64 { return s.P90 },
	"p99":    func(s *Summary) float64 { return s.P99 },
	"max":    func(s *Summary) float64 { return s.Max },
}

// Histogram is sparse and log-spaced: bin k counts the values v with Growth^k <= v < Growth^(k+1). Values of zero or
// less are counted in Zero. Two histograms of the same growth merge by adding counts.
type Histogram struct {
	Growth float64    `json:"growth"`
	Zero   int64      `json:"zero"`
	Bins   [][2]int64 `json:"bins"` // [k, count], k ascending
}

// Find returns the metric with this id and exactly these labels, or nil.
func (r *Report) Find(id string, labels Labels) *Metric {
	return lists.Find(r.Metrics, func(m *Metric) bool { return m.ID == id && maps.Equal(m.Labels, labels) })
}

// Of is what is made of the value of a pointer; none if it is nil.
func Of[T, R any](p *T, of func(T) R, none R) R {
	if p == nil {
		return none
	}
	return of(*p)
}

// Optional is a number, or nil if it is negative: unknown.
func Optional(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}

// Stated is a text or a number, or nil if it is empty or not positive: not stated.
func Stated[T cmp.Ordered](v T) *T {
	var none T
	if v <= none {
		return nil
	}
	return &v
}

// ValueOr is the value of a pointer; none if it is nil.
func ValueOr[T any](p *T, none T) T {
	if p == nil {
		return none
	}
	return *p
}
