package loadfile

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report"
)

func ptr[T any](v T) *T { return &v }

const ms = 1_000_000

// hand is a run of six requests, in ms:
//
//	due sent first last end  tokens
//	  0    0    20   50  52  4       ttft 20, tpot 10, e2e 52
//	 10   10    20   20  21  1       ttft 10, e2e 11
//	 20   30    60  100 100  3       ttft 40, tpot 20, e2e 80, late
//	 30   30     –    –  40  http_503
//	 40   40     –    –  90  timeout
//	 50   50     –    –  60  cancelled
func hand() *Result {
	records := []Record{
		{Due: 20 * ms, Sent: 30 * ms, First: 60 * ms, Last: 100 * ms, End: 100 * ms, Input: 5, Output: 3, ByUsage: true},
		{Due: 0, Sent: 0, First: 20 * ms, Last: 50 * ms, End: 52 * ms, Input: 7, Output: 4, ByUsage: true},
		{Due: 10 * ms, Sent: 10 * ms, First: 20 * ms, Last: 20 * ms, End: 21 * ms, Input: 8, Output: 1, ByUsage: true},
		{Due: 30 * ms, Sent: 30 * ms, First: -1, Last: -1, End: 40 * ms, Input: -1, Output: -1, Failed: HTTPStatus(503)},
		{Due: 40 * ms, Sent: 40 * ms, First: -1, Last: -1, End: 90 * ms, Input: -1, Output: -1, Failed: Timeout},
		{Due: 50 * ms, Sent: 50 * ms, First: -1, Last: -1, End: 60 * ms, Input: -1, Output: -1, Failed: Cancelled},
	}
	gaps := []int64{15 * ms, 10 * ms, 5 * ms, 25 * ms, 15 * ms}
	w := Workload{API: "completions", Stream: true, Prompts: "mixed", Fingerprint: "00ff", Loop: "open", Rate: ptr(100.0), Requests: ptr(int64(6)), Temperature: 0.8}
	r := Build(w, SLO{TTFT: ptr(int64(30 * ms)), TPOT: ptr(int64(10 * ms))}, records, gaps)
	r.Complete, r.Stopped = false, "interrupted"
	r.Describe("v1", "org/model")
	return r
}

func TestBuildByHand(t *testing.T) {
	r := hand()
	if r.Counts != (Counts{Sent: 6, Succeeded: 3, Failed: 2, Cancelled: 1, Late: 1}) || r.Window != 100*ms {
		t.Errorf("%+v, window %d", r.Counts, r.Window)
	}
	if !slices.Equal(r.Failures, []Failure{{"http_503", 1}, {"timeout", 1}}) {
		t.Errorf("%v", r.Failures)
	}
	if *r.Tokens.Input != 20 || *r.Tokens.Output != 8 || *r.Rates.Requests != 30 || *r.Rates.OutputTokens != 80 || *r.Rates.InputTokens != 200 {
		t.Errorf("%+v %+v", r.Tokens, r.Rates)
	}
	if r.Goodput.Good != 2 || *r.Goodput.Ratio != 0.4 || *r.Goodput.Rate != 20 {
		t.Errorf("%+v", r.Goodput)
	}
	for _, c := range []struct {
		name          string
		d             *Distribution
		n             int64
		p50, p90, max float64
	}{
		{"ttft", r.Latency.TTFT, 3, 20 * ms, 36 * ms, 40 * ms}, // 10 20 40
		{"tpot", r.Latency.TPOT, 2, 15 * ms, 19 * ms, 20 * ms}, // 10 20
		{"e2e", r.Latency.E2E, 3, 52 * ms, 74.4 * ms, 80 * ms}, // 11 52 80
		{"itl", r.Latency.ITL, 5, 15 * ms, 21 * ms, 25 * ms},   // 5 10 15 15 25
		{"delay", r.Latency.Delay, 6, 0, 5 * ms, 10 * ms},      // 0 0 0 0 0 10
	} {
		if s := c.d.Summary; s.N != c.n || s.P50 != c.p50 || s.P90 != c.p90 || s.Max != c.max {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if q := r.Requests[2]; q.Due != 20*ms || q.Sent != 30*ms || *q.First != 60*ms || q.End != 100*ms || r.Requests[5].Failed != Cancelled || r.Requests[5].First != nil {
		t.Errorf("%+v", r.Requests)
	}
}

// An answer of 50 tokens in one event says nothing about the time per token: the median is that of the other answer,
// 30 ms over the 3 tokens after the first. It keeps the limits all the same.
func TestAnswerInOnePieceHasNoTimePerToken(t *testing.T) {
	r := Build(Workload{}, SLO{TPOT: ptr(int64(10 * ms))}, []Record{
		{First: 900 * ms, Last: 900 * ms, End: 900 * ms, Input: 5, Output: 50, ByUsage: true},
		{First: 20 * ms, Last: 50 * ms, End: 50 * ms, Input: 5, Output: 4, ByUsage: true},
		{First: 700 * ms, Last: 700 * ms, End: 700 * ms, Input: 5, Output: 50, ByUsage: true},
	}, nil)
	if d := r.Latency.TPOT; d == nil || d.Summary.N != 1 || d.Summary.P50 != 10*ms || r.Goodput.Good != 3 {
		t.Errorf("%+v, %+v", d, r.Goodput)
	}
}

func TestNothingSucceeded(t *testing.T) {
	r := Build(Workload{API: "chat", Prompts: "decode", Loop: "closed"}, SLO{}, []Record{{First: -1, End: 5, Input: -1, Output: -1, Failed: Connect}}, nil)
	if r.Latency.TTFT != nil || r.Rates.Requests != nil || r.Tokens.Output != nil || r.Goodput != nil || r.Tokens.CountedBy != "" {
		t.Errorf("%+v", r)
	}
	if err := r.Write(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}

func written(t testing.TB, r *Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	r := hand()
	text := written(t, r)
	again, err := Read(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("%v\n%+v\n%+v", err, r, again)
	}
	if written(t, again) != text {
		t.Error("writing again gives other bytes")
	}
}

// Whatever is recorded, the result keeps its own contract and does not depend on the order of the records.
func TestAnyRecordsMakeAResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		time := rapid.Int64Range(0, 1<<40)
		var records []Record
		var gaps []int64
		for i := range rapid.IntRange(0, 40).Draw(t, "n") {
			c := Record{Due: int64(i)*1000 + rapid.Int64Range(0, 999).Draw(t, "due"), First: -1, Last: -1, Input: -1, Output: -1}
			c.Sent = c.Due + time.Draw(t, "delay")
			c.End = c.Sent + time.Draw(t, "e2e")
			c.Failed = rapid.SampledFrom([]string{"", "", "", Timeout, "http_500", Cancelled}).Draw(t, "failed")
			if c.Failed == "" {
				c.First = c.Sent + rapid.Int64Range(0, c.End-c.Sent).Draw(t, "first")
				c.Last = c.First + rapid.Int64Range(0, c.End-c.First).Draw(t, "last")
				c.Output = rapid.Int64Range(1, 100).Draw(t, "output")
				gaps = append(gaps, c.Last-c.First)
			}
			records = append(records, c)
		}
		w := Workload{API: "completions", Prompts: "mixed", Loop: "open"}
		slo := SLO{E2E: ptr(rapid.Int64Range(1, 1<<41).Draw(t, "slo"))}
		shuffled := slices.Clone(records)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		one, other := Build(w, slo, records, slices.Clone(gaps)), Build(w, slo, shuffled, gaps)
		var a, b bytes.Buffer
		if err := one.Write(&a); err != nil {
			t.Fatal(err)
		}
		if err := other.Write(&b); err != nil || a.String() != b.String() {
			t.Fatalf("the order of records shows (%v)", err)
		}
		if _, err := Read(&a); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLongLoadsListEachNth(t *testing.T) {
	records := make([]Record, 50_001)
	for i := range records {
		records[i] = Record{Due: int64(i), Sent: int64(i), First: int64(i + 1), Last: int64(i + 1), End: int64(i + 2), Input: 1, Output: 1}
	}
	r := Build(Workload{API: "completions", Prompts: "mixed", Loop: "open"}, SLO{}, records, nil)
	if r.Every != 3 || len(r.Requests) != 16_667 || r.Counts.Succeeded != 50_001 || r.Requests[1].Due != 3 {
		t.Errorf("every %d, %d listed", r.Every, len(r.Requests))
	}
}

func TestReadRefuses(t *testing.T) {
	good := written(t, hand())
	for name, c := range map[string]struct{ old, new, want string }{
		"counts":      {`"sent":6`, `"sent":7`, "do not add up"},
		"failures":    {`"kind":"timeout","count":1`, `"kind":"timeout","count":2`, "do not add up"},
		"negative":    {`"kind":"timeout","count":1`, `"kind":"timeout","count":-1`, "cannot be"},
		"loop":        {`"loop":"open"`, `"loop":"<b>"`, "loop is not one of"},
		"prompts":     {`"prompts":"mixed"`, `"prompts":"hunter2"`, "prompts is not one of"},
		"fingerprint": {`"00ff"`, `"hunter2"`, "not a hash"},
		"summary":     {`"p50":20000000`, `"p50":60000000`, "ttft: the summary cannot be"},
		"histogram":   {`"zero":5`, `"zero":4`, "delay: the histogram does not hold the sample"},
		"goodput":     {`"good":2`, `"good":4`, "goodput cannot be"},
		"complete":    {`"complete": false`, `"complete": true`, "cannot be"},
		"other major": {`explain.load/1`, `explain.load/2`, "this version reads"},
		"rate":        {`"rates": {"requests":30`, `"rates": {"requests":-30`, "a rate is negative"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Errorf("%s: nothing was replaced", name)
		}
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Text of a result that somebody else wrote goes into reports: only words that explain knows, and a name that can be shown.
func TestForeignTextIsReplaced(t *testing.T) {
	text := strings.NewReplacer(`"kind":"timeout"`, `"kind":"hunter2"`, `"failed":"timeout"`, `"failed":"hunter2"`, `"org/model"`, `"/home/hunter2/x\u0007\u202emodel"`).Replace(written(t, hand()))
	r, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if *r.Model != "xmodel" || !slices.Equal(r.Failures, []Failure{{"http_503", 1}, {"other", 1}}) || r.Requests[4].Failed != Other {
		t.Errorf("%s %v %+v", *r.Model, r.Failures, r.Requests[4])
	}
}

func TestModelName(t *testing.T) {
	for in, want := range map[string]string{
		"meta-llama/Llama-2-7b-hf": "meta-llama/Llama-2-7b-hf", "gpt2": "gpt2", "/home/me/models/llama": "llama", "./out/llama/": "llama", "~/x": "x", `C:\Users\me\llama`: "llama",
		"s3://bucket/llama": "llama", "a/b/c": "c", "": "", "/": "", "\x1b[31m": "[31m", strings.Repeat("é", 300): strings.Repeat("é", maxModel),
	} {
		if got := report.ValueOr(modelName(in), ""); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, k := range append(slices.Clone(Kinds), HTTPStatus(404), HTTPStatus(599), HTTPStatus(100)) {
		if knownKind(k) != k {
			t.Errorf("%s is not known", k)
		}
	}
	for _, k := range []string{"", "http_", "http_999", "http_4044", "http_4x4", "x"} {
		if knownKind(k) != Other {
			t.Errorf("%s is known", k)
		}
	}
	if HTTPStatus(700) != Other || HTTPStatus(503) != "http_503" {
		t.Error(HTTPStatus(700), HTTPStatus(503))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(written(f, hand())))
	f.Add([]byte(`{"schema":"explain.load/1"}`))
	f.Add([]byte(`{"schema":"explain.load/1","every":1,"complete":true,"workload":{"api":"chat","prompts":"mixed","loop":"open"},"latency":{"ttft":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		again, err := Read(strings.NewReader(written(t, r)))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("what was read and written reads otherwise: %v", err)
		}
	})
}

// A load is described by what its options are; each option is a part of its own.
func TestWorkloadText(t *testing.T) {
	open := Workload{API: "chat", Prompts: "dataset", Rate: ptr(2.5), Duration: ptr(int64(90_000 * ms)), Seed: 7, Fingerprint: "0a"}
	closed := Workload{API: "completions", Prompts: "mixed", Concurrency: ptr(int64(8)), Requests: ptr(int64(40)), Fingerprint: "0b"}
	for w, want := range map[*Workload]string{
		&open:   "chat; dataset prompts; rate 2.5/s; concurrency unlimited; any number of requests; 1m30s; seed 7; fingerprint 0a",
		&closed: "completions; mixed prompts; rate unlimited; concurrency 8; 40 requests; no limit of time; seed 0; fingerprint 0b",
	} {
		if got := w.Text(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
