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
	at     []int // by column of the form: index into fields, -1 if the file lacks the column
	failed bool  // a column that was asked for does not hold what it should: the row is not understood
}

// text is the field of a column; empty if the file lacks it.
func (r *row) text(column int) string {
	if i := r.at[column]; i >= 0 && i < len(r.fields) {
		return strings.TrimSpace(r.fields[i])
	}
	return ""
}

// num is a finite number.
func (r *row) num(column int) (float64, bool) {
	v, err := strconv.ParseFloat(r.text(column), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// amount is a number from 0 to most.
func (r *row) amount(column int, most float64) float64 {
	v, ok := r.num(column)
	r.failed = r.failed || !ok || v < 0 || v > most
	return v
}

// maxCount bounds a count, so that sums of them stay exact.
const maxCount = 1 << 40

// count is a whole number that cannot be negative.
func (r *row) count(column int) int64 {
	n, ok := r.knownCount(column)
	r.failed = r.failed || !ok
	return n
}

// knownCount is a count that may be missing.
func (r *row) knownCount(column int) (int64, bool) {
	v, ok := r.num(column)
	return int64(v), ok && v >= 0 && v == math.Trunc(v) && v <= maxCount
}

// layer is the number of a layer, in the first column: -1 stands for one that profilemate did not find.
func (r *row) layer() int {
	v, ok := r.num(0)
	r.failed = r.failed || !ok || v != math.Trunc(v) || v < -1 || v > 1e9
	return int(v)
}

// Bounds of a point in time (a century, in seconds) and of a duration (a century, in nanoseconds).
const (
	maxSeconds = 3.2e9
	maxNs      = maxSeconds * 1e9
)

// seconds is a point in time.
func (r *row) seconds(column int) float64 { return r.amount(column, maxSeconds) }

// optionalSeconds is nil if the field is empty.
func (r *row) optionalSeconds(column int) *float64 {
	if r.text(column) == "" {
		return nil
	}
	return new(r.seconds(column))
}

// duration is a column in units of scale ns, as whole nanoseconds. The files have three decimals of a millisecond or of
// a second, so that nothing is rounded.
func (r *row) duration(column int, scale float64) float64 {
	return math.Round(r.amount(column, maxNs/scale) * scale)
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
	r := row{at: at}
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
		if r.failed = len(r.fields) != len(names); !r.failed {
			f.take(d, &r)
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
	// columns by name, in the order in which take asks for them: "a|b" is called one or the other, "a?" may be missing.
	columns []string
	take    func(d *Data, r *row)
}

// forms of a session's CSV files. No two have all required columns in common.
var forms = []*form{
	{"forward_pass_timing.csv", []string{"timestamp_sec", "phase", "num_tokens", "forward_time_ms|duration_ms",
		"batch_size?"}, takeForward},
	{"cpu_operations_timing.csv", []string{"timestamp_sec", "operation", "duration_ms", "context?"},
		takeOperation},
	{"encoder_decoder_timing.csv", []string{"timestamp_sec", "component", "duration_ms"}, takeComponent},
	{"batch_utilization.csv", []string{"timestamp_sec", "num_seqs", "max_num_seqs", "num_tokens", "max_tokens",
		"phase?", "running_queue_len?", "waiting_queue_len?"}, takeBatch},
	{"preemption_events.csv", []string{"timestamp_sec", "request_id", "event", "reason?", "running_time_sec?"},
		takeEvent},
	{"request_lifecycle.csv", []string{"request_id", "started_sec", "preempted_sec", "resumed_sec", "finished_sec",
		"total_time_sec?", "preemption_delay_sec?"}, takeRequest},
	{"kv_cache_usage.csv", []string{"timestamp_sec", "usage_pct", "num_blocks?", "total_blocks?"}, takeUsage},
	{"kv_cache_evictions.csv", []string{"timestamp_sec", "lifetime_sec", "idle_sec"}, takeEviction},
	{"cuda_graph_captures.csv", []string{"runtime_mode", "num_tokens", "capture_time_sec|capture_time", "num_reqs?",
		"uniform?", "has_lora?"}, takeCapture},
	{"cuda_graph_usage.csv", []string{"runtime_mode", "num_tokens", "replay_count", "num_reqs?", "uniform?",
		"has_lora?"}, takeReplays},
	{"cuda_graph_timeline.csv", []string{"timestamp_sec", "descriptor", "duration_ms"}, takeReplay},
	{"moe_expert_activations.csv", []string{"layer_idx", "expert_id", "activation_count"}, takeActivations},
	{"moe_expert_coselection.csv", []string{"layer_idx", "expert_id_1", "expert_id_2", "coselection_count"},
		takePair},
	{"moe_routing_weights_hist.csv", []string{"layer_idx", "token_idx", "expert_id", "weight"}, takeWeight},
	{"moe_load_imbalance.csv", []string{"layer_idx", "timestamp_sec", "std_dev", "max_min_ratio"},
		takeImbalance},
}

// places says where in a header the columns of the form are, -1 for those that are missing, and which needed ones are.
func (f *form) places(header []string) (at []int, missing []string) {
	at = make([]int, len(f.columns))
	for i, c := range f.columns {
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

// contextPhase finds the phase in the context of an operation: "phase=decode".
func contextPhase(s string) string {
	if p, ok := strings.CutPrefix(s, "phase="); ok {
		if w := word(Phases, p); w != other {
			return w
		}
	}
	return ""
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
