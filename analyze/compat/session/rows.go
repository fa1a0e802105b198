package session

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// maxLine bounds the memory of one row. The longest real rows have about 200 bytes.
const maxLine = 64 << 10

// row is one record of a CSV file, its fields found by the column's place in the form.
type row struct {
	fields []string
	at     []int     // by column of the form: index into fields, -1 if the file lacks the column
	kinds  []*kind   // likewise; nil: text, or what may be missing
	values []float64 // likewise, of columns that have a kind
	failed bool      // the row is not understood
}

// newRow is for the rows of a form in a file in which its columns are at these places.
func newRow(f *form, at []int) *row {
	r := &row{at: at, kinds: make([]*kind, len(at)), values: make([]float64, len(at))}
	for i, c := range f.columns {
		_, name, _ := strings.Cut(c, " ")
		r.kinds[i] = kinds[name]
	}
	return r
}

// text is the field of a column; empty if the file lacks it.
func (r *row) text(column int) string {
	if i := r.at[column]; i >= 0 && i < len(r.fields) {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

// Bounds of a count, so that sums of them stay exact, of a point in time (a century, in seconds) and of a duration (a
// century, in nanoseconds).
const (
	maxCount   = 1 << 40
	maxSeconds = 3.2e9
	maxNs      = maxSeconds * 1e9
)

// kind is what the numbers of a column must be for a row to be understood.
type kind struct {
	least, most float64
	whole       bool
	ns          float64 // of its unit, for a duration: it becomes whole nanoseconds
	empty       bool    // it may be missing, which is -1
}

// kinds by their names in forms. Durations have three decimals of a millisecond or of a second, so that nothing is
// rounded.
var kinds = map[string]*kind{
	"at":      {most: maxSeconds},              // a point in time, in seconds
	"when":    {most: maxSeconds, empty: true}, // one that need not have been
	"ms":      {most: maxNs / nsPerMs, ns: nsPerMs},
	"s":       {most: maxNs / nsPerS, ns: nsPerS},
	"n":       {most: maxCount, whole: true},
	"layer":   {least: -1, most: 1e9, whole: true}, // -1 stands for one that profilemate did not find
	"percent": {most: 100.5},
	"weight":  {most: 1.001},
	"ratio":   {most: maxRatio},
}

// parse reads the columns that have a kind, and reports whether all hold what they should.
func (r *row) parse() bool {
	for i, k := range r.kinds {
		if k != nil {
			v, ok := r.number(i, k)
			if !ok {
				return false
			}
			r.values[i] = v
		}
	}
	return true
}

// number is that of a column, if it is of a kind.
func (r *row) number(column int, k *kind) (v float64, ok bool) {
	text := r.text(column)
	if k.empty && text == "" {
		return -1, true
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= k.least && v <= k.most) || k.whole && v != math.Trunc(v) {
		return 0, false
	}
	if k.ns > 0 {
		v = math.Round(v * k.ns)
	}
	return v + 0, true // never -0
}

// count is a count that may be missing.
func (r *row) count(column int) (int64, bool) {
	v, ok := r.number(column, kinds["n"])
	return int64(v), ok
}

// roundNs is a difference of two points in time, which have three decimals of a second, in nanoseconds.
func roundNs(seconds float64) float64 { return math.Round(seconds*1e6) * 1e3 }

// eachRow takes the rows under the header and counts which are understood. A field with a line break is not: no file of
// a session has one.
func (d *Data) eachRow(ctx context.Context, in *file.Input, src io.Reader, f *form) error {
	l := file.NewLines(src)
	first, _, ok := l.Next()
	if !ok || l.Err != nil {
		return cmp.Or(l.Err, io.EOF)
	}
	header := string(first)
	names, _ := file.Split(header, ',', nil)
	at, _ := f.places(names)
	r := newRow(f, at)
	cut, tooLong := false, false // the last row lacks its end; some row was not looked at
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, _, ok := l.Next()
		if !ok || l.Err != nil {
			break
		}
		in.Tally.Records++
		cut = !l.Ends
		switch {
		case len(line) >= maxLine:
			cut, tooLong = false, true
			in.Tally.Unknown++
			continue
		case len(bytes.TrimSpace(line)) == 0, string(line) == header: // two sessions in one file
			in.Tally.Known++
			continue
		}
		r.fields, _ = file.Split(string(line), ',', r.fields)
		cut = cut || len(r.fields) < len(names)
		if r.failed = len(r.fields) != len(names) || !r.parse(); !r.failed {
			f.take(d, r)
		}
		if r.failed {
			in.Tally.Unknown++
		} else {
			in.Tally.Understood++
		}
	}
	if cut {
		d.cut = append(d.cut, in.Name)
	}
	if l.Err != nil {
		d.broken = append(d.broken, in.Name)
	}
	if tooLong {
		d.long = append(d.long, in.Name)
	}
	return nil
}

// form is one kind of CSV file: the columns that identify it, and the function that takes its rows.
type form struct {
	name string // the file that profilemate writes
	// columns by name, in the order in which take asks for them, each with its kind: "a|b" is called one or the other,
	// "a?" may be missing.
	columns []string
	take    func(d *Data, r *row)
}

// forms of a session's CSV files. No two have all required columns in common.
var forms = []*form{
	{"forward_pass_timing.csv", []string{"timestamp_sec at", "phase", "num_tokens n", "forward_time_ms|duration_ms ms",
		"batch_size?"}, takeForward},
	{"cpu_operations_timing.csv", []string{"timestamp_sec", "operation", "duration_ms ms", "context?"},
		takeOperation},
	{"encoder_decoder_timing.csv", []string{"timestamp_sec", "component", "duration_ms ms"}, takeComponent},
	{"batch_utilization.csv", []string{"timestamp_sec at", "num_seqs n", "max_num_seqs", "num_tokens n", "max_tokens",
		"phase?", "running_queue_len?", "waiting_queue_len?"}, takeBatch},
	{"preemption_events.csv", []string{"timestamp_sec at", "request_id", "event", "reason?", "running_time_sec?"},
		takeEvent},
	{"request_lifecycle.csv", []string{"request_id", "started_sec when", "preempted_sec when", "resumed_sec when",
		"finished_sec when", "total_time_sec?", "preemption_delay_sec?"}, takeRequest},
	{"kv_cache_usage.csv", []string{"timestamp_sec at", "usage_pct percent", "num_blocks?", "total_blocks?"}, takeUsage},
	{"kv_cache_evictions.csv", []string{"timestamp_sec", "lifetime_sec s", "idle_sec s"}, takeEviction},
	{"cuda_graph_captures.csv", []string{"runtime_mode", "num_tokens", "capture_time_sec|capture_time at", "num_reqs?",
		"uniform?", "has_lora?"}, takeCapture},
	{"cuda_graph_usage.csv", []string{"runtime_mode", "num_tokens", "replay_count n", "num_reqs?", "uniform?",
		"has_lora?"}, takeReplays},
	{"cuda_graph_timeline.csv", []string{"timestamp_sec", "descriptor", "duration_ms ms"}, takeReplay},
	{"moe_expert_activations.csv", []string{"layer_idx layer", "expert_id n", "activation_count n"}, takeActivations},
	{"moe_expert_coselection.csv", []string{"layer_idx layer", "expert_id_1 n", "expert_id_2 n", "coselection_count n"},
		takePair},
	{"moe_routing_weights_hist.csv", []string{"layer_idx layer", "token_idx n", "expert_id n", "weight weight"},
		takeWeight},
	{"moe_load_imbalance.csv", []string{"layer_idx layer", "timestamp_sec at", "std_dev ratio", "max_min_ratio ratio"},
		takeImbalance},
}

// places says where in a header the columns of the form are, -1 for those that are missing, and which needed ones are.
func (f *form) places(header []string) (at []int, missing []string) {
	at = make([]int, len(f.columns))
	for i, c := range f.columns {
		c, _, _ = strings.Cut(c, " ")
		c, optional := strings.CutSuffix(c, "?")
		at[i] = -1
		for _, name := range strings.Split(c, "|") {
			for j, h := range header {
				if at[i] < 0 && strings.EqualFold(strings.TrimSpace(h), name) {
					at[i] = j
				}
			}
		}
		if at[i] < 0 && !optional {
			missing = append(missing, strings.ReplaceAll(c, "|", " or "))
		}
	}
	return at, missing
}

// formOf finds the form of a CSV file by its first line; if that lacks columns of every form, by the file's name and
// the other columns.
func formOf(name string, head []byte) (f *form, missing []string) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if line = bytes.TrimRight(line, "\r"); len(line) > maxHeader || bytes.IndexByte(line, ',') < 0 {
		return nil, nil
	}
	header, _ := file.Split(string(line), ',', nil)
	for _, x := range forms {
		at, lacks := x.places(header)
		if len(lacks) == 0 {
			return x, nil
		}
		if strings.HasPrefix(filepath.Base(name), x.name) && len(lacks) < len(at) && slices.Max(at) >= 0 {
			f, missing = x, lacks
		}
	}
	return f, missing
}

// maxHeader bounds the first line of a file. The longest real one has 140 bytes.
const maxHeader = 4 << 10

// Files of a session hold text of the program: operation names, reasons, contexts, request ids. Only words of these
// lists leave this package, anything else becomes other, so that no text of a file reaches a report.

// other stands for a word that is on no list.
const other = "other"

// Words in the order of reports.
var (
	Phases     = []string{"prefill", "decode", "mixed", "idle", other}
	Components = []string{"encoder", "decoder", "cross_attention", other}
	Reasons    = []string{"recompute", "swap", "kv_cache_full", other}
	operations = []string{"scheduling", "model_execution", "batch_preparation", "prepare_inputs", "sampling",
		"tokenization", "detokenization", "output_processing", other}
	modes = []string{"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}
	types = []string{"encoder_decoder", "decoder_only", "unknown"}

	stated = Components[:len(Components)-1] // that a summary can hold
)

func word(list []string, s string) string {
	if i := slices.IndexFunc(list, func(w string) bool { return strings.EqualFold(w, s) }); i >= 0 {
		return list[i]
	}
	return other
}

// enumWord is the word of a Python enum member, which some versions write with its class: PreemptionMode.RECOMPUTE.
func enumWord(list []string, s string) string {
	return word(list, s[strings.LastIndexByte(s, '.')+1:])
}

// Batch describes the batch that a CUDA graph was captured for.
type Batch struct {
	Mode    string // of modes, or other
	Tokens  int64  // -1: not known
	Reqs    int64  // -1: any number
	Uniform bool   // every request has the same number of tokens
	LoRA    bool
}

// descriptor reads "FULL:BatchDescriptor(num_tokens=8, num_reqs=8, uniform=True, has_lora=False)".
func descriptor(s string) (Batch, bool) {
	mode, rest, ok := strings.Cut(s, ":")
	tokens := tokensField.FindStringSubmatch(rest)
	if !ok || tokens == nil {
		return Batch{}, false
	}
	b := Batch{Mode: enumWord(modes, mode), Tokens: whole(tokens[1]), Reqs: -1,
		Uniform: strings.Contains(rest, "uniform=True"), LoRA: strings.Contains(rest, "has_lora=True")}
	if reqs := reqsField.FindStringSubmatch(rest); reqs != nil {
		b.Reqs = whole(reqs[1])
	}
	return b, true
}

var (
	tokensField = regexp.MustCompile(`num_tokens=([0-9]{1,9})\b`)
	reqsField   = regexp.MustCompile(`num_reqs=([0-9]{1,9})\b`)
)

// whole is a number of at most nine digits, -1 for anything else.
func whole(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > 9 {
		return -1
	}
	return int64(n)
}
