// Package serverlog reads logs of vLLM, SGLang, TensorRT-LLM, LMDeploy and text-generation-inference (TGI) servers:
// statistics of the engine, iterations, requests, settings that the server logs at its start, and errors. It takes
// numbers, and names from short lists; it never keeps a line, because lines quote prompts.
//
// Each line goes through the same steps:
//
//	{"log":"(EngineCore pid=7) INFO 11-03 10:00:01 [loggers.py:123] Engine 000: Avg prompt throughput: 512.0 tokens/s, …"}
//	 '-- 1 --'------- 2 ------'-------------- 3 -------------------'--- 4 ----'------------------ 5 --------------------'
//
//	1  log drivers wrap lines in JSON, one inside the other: driverLine and jsonRecord take it off (jsonline.go)
//	2  docker, kubectl, journald and the engine's processes put a prefix before the header: findHeader skips it (head.go)
//	3  the header has level, clock and source file; the date may lack its year (clock.go)
//	4  which engine speaks; engines of one server differ by number
//	5  the message is known by how it begins, never by what it contains, since clients decide what stands inside of it;
//	   message.go chooses by the first byte, then by prefix, and calls the reader of that form (samples.go for this one)
//
// The result of a line is a verdict: understood (a value was taken), known (a known form without a value) or unknown.
// The tally of a file counts them, so that the log of a new engine version shows up as unknown lines, not as missing
// numbers.
package serverlog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Data is the content of server logs.
type Data struct {
	Starts     []*Start // of servers, in the order of the logs; at least one per log
	Samples    []Sample // of the engines' statistics, in the order of the logs
	Iterations Iterations
	Requests   Requests
	Specs      []Spec
	Balances   []float64 // expert parallel load balance, 0..1
	Graphs     Graphs
	Batches    []Batch // that debug lines of the scheduler state
	Transfers  Transfers
	Details    Details
	Events     Events
	Year       bool // timestamps have a year

	DroppedSamples int64
	IdleBalances   int64 // of steps without tokens
	Preemptions    int64
	HasPreemptions bool // a line says how many

	written         []written // by file
	replicas        int       // that wrote one log at once; 0 one
	long, malformed int64
	damaged         []string // files that could not be read to their end
}

func (d *Data) current() int32 { return int32(len(d.Starts) - 1) }

func (d *Data) preempt(n int64) {
	d.Preemptions += n
	d.HasPreemptions = true
}

// Is reports whether a file that starts with head, and is named name, is of this kind: a line of it has vLLM's form, or
// begins as only these servers' do.
func Is(name string, head []byte) bool { return file.AnyLine(bytes.NewReader(head), IsLine) }

// IsLine reports whether a line is of a log. It may stand anywhere in a file: a container may print much while it
// installs and downloads.
func IsLine(line []byte) bool {
	line = program(line)
	if _, msg, ok := jsonRecord(skipSpace(line)); ok {
		line = msg
	}
	h, msg, ok := findHeader(line)
	if ok && (h.vllm && h.clock != NoClock || hasPrefix(h.tags, " TP") || hasPrefix(h.tags, " DP")) {
		return true
	}
	if !ok {
		msg = line[:min(len(line), headReach)]
	}
	if _, ours := trtMessage(msg, msg); ours && !ok {
		return true
	}
	if !ok {
		bare := plain(line)
		if tgiLine(bare, bare[:min(len(bare), headReach)]) {
			return true
		}
	}
	if hasPrefix(msg, "Engine ") {
		_, msg, _ = bytes.Cut(msg, []byte(": "))
	}
	for _, p := range phrases {
		if i := bytes.Index(msg, []byte(p)); i == 0 || i > 0 && !ok {
			return true
		}
	}
	return ok && (hasPrefix(msg, "The server is fired up and ready to roll") ||
		hasPrefix(msg, "max_total_num_tokens=") || hasPrefix(msg, "vLLM API server version "))
}

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{Requests: Requests{byID: map[string]int32{}}, Graphs: Graphs{rows: map[GraphRow]int64{}},
		Events: Events{Status: map[int64]int64{}}}
	err := file.Each(ctx, files, func(in *file.Input, r io.Reader) error { return readFile(ctx, d, in, r) })
	if err != nil {
		return nil, err
	}
	for _, s := range d.Starts {
		s.ofRanks()
		d.Preemptions += s.retracted()
		s.blocks()
	}
	d.steady()
	return d, nil
}

// Start is the start that describes the server: the last of those with most facts, since a log may begin with a failed
// one. Of several logs, one that is read later may be the older one, as server.log.1 is.
func (d *Data) Start() *Start {
	best := d.Starts[0]
	for _, s := range d.Starts[1:] {
		if n, most := s.facts(), best.facts(); n > most || n == most && !best.after(s) {
			best = s
		}
	}
	return best
}

// after reports whether the log says that a start came after another; times without a year say so for half a year.
func (s *Start) after(o *Start) bool {
	return s.first != NoClock && o.first != NoClock && s.first > o.first && s.first-o.first < halfYear
}

// facts counts the facts of a start that matter to a comparison.
func (s *Start) facts() int {
	return lists.Count([]bool{s.Model != "", s.DType != "", s.TP > 0, s.MaxModelLen > 0, s.MaxNumSeqs > 0,
		s.KVTokens > 0, !math.IsNaN(s.LoadTime), !math.IsNaN(s.Ready)}, func(known bool) bool { return known })
}

// linesAre begins a sentence on n lines of the log.
func linesAre(n int64) string {
	if n == 1 {
		return "1 line of the log is"
	}
	return fmt.Sprintf("%d lines of the log are", n)
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list report.Warnings
	list.If(len(d.damaged) > 0, "log_damaged", "Read up to where the data ends or is damaged: %s",
		strings.Join(d.damaged, ", "))
	list.If(d.long > 0, "log_long_lines", "%s longer than 1 MiB; only the beginning was read", linesAre(d.long))
	list.If(d.malformed > 0, "log_malformed", "%s broken in the middle, as if two programs wrote at once, and ignored",
		linesAre(d.malformed))
	list.If(d.Iterations.Dropped > 0, "log_iterations_dropped",
		"The log has more than %d iterations; %d more are not counted", maxIterations, d.Iterations.Dropped)
	list.If(d.DroppedSamples > 0, "log_samples_dropped",
		"The log has more lines of statistics than are kept; %d are not counted", d.DroppedSamples)
	list.If(d.Requests.Dropped > 0, "log_requests_dropped",
		"%d requests were not followed: the log has more than %d, or their ids are too long", d.Requests.Dropped, maxRequests)
	list.If(d.replicas > 1, "log_replicas", "%d replicas of a server wrote this log at once: numbers are of all of "+
		"them, and facts of one. Give the log of one replica", d.replicas)
	what := d.differ()
	list.If(what != "", "log_starts_differ", "The log holds %d starts of a server, which differ in %s; statistics are "+
		"over all of them, facts are of the last complete one", len(d.Starts), what)
	return list
}

// differ names the facts that matter to a comparison in which the starts of a log differ.
func (d *Data) differ() string {
	var list []string
	text := func(name string, of func(s *Start) string) {
		stated := lists.Set(d.Starts, of)
		if delete(stated, ""); len(stated) > 1 {
			list = append(list, name)
		}
	}
	text("engine", func(s *Start) string { return s.Engine })
	text("version", func(s *Start) string { return s.Version })
	text("model", func(s *Start) string { return s.Model })
	text("data type", func(s *Start) string { return s.DType })
	text("quantization", func(s *Start) string { return s.Quantization })
	text("parallelism", (*Start).Parallelism)
	text("max_model_len", func(s *Start) string { return number(s.MaxModelLen) })
	text("max_num_seqs", func(s *Start) string { return number(s.MaxNumSeqs) })
	return strings.Join(list, ", ")
}

// Environment fills in the facts that the logs state.
func (d *Data) Environment(e *report.Environment) {
	s := d.Start()
	e.Model = cmp.Or(report.Stated(s.Model), e.Model)
	if s.DType != "auto" {
		e.DType = cmp.Or(report.Stated(s.DType), e.DType)
	}
	e.Quantization = cmp.Or(report.Stated(s.Quantization), e.Quantization)
	e.Parallelism = cmp.Or(report.Stated(s.Parallelism()), e.Parallelism)
	e.Engine = cmp.Or(report.Stated(strings.TrimSpace(s.Engine+" "+s.Version)), e.Engine)
	e.EngineSettings = cmp.Or(report.Stated(s.settings()), e.EngineSettings)
	e.MaxModelLen = cmp.Or(report.Stated(s.MaxModelLen), e.MaxModelLen)
	e.MaxNumSeqs = cmp.Or(report.Stated(s.MaxNumSeqs), e.MaxNumSeqs)
}
