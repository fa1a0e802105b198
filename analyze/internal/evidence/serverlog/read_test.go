package serverlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
)

// read reads a log of this text.
func read(tb testing.TB, text []byte) (*Data, *file.Tally) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "server.log")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	in, err := file.New(path, "server.log")
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Read(context.Background(), []file.Input{in})
	if err != nil {
		tb.Fatal(err)
	}
	if t := in.Tally; t.Records != t.Understood+t.Known+t.Unknown {
		tb.Fatalf("lines were lost: %+v", *t)
	}
	return d, in.Tally
}

// What stands before a message does not matter: the same line of statistics is read behind every prefix that processes,
// terminals, containers and log drivers put before it.
func TestPrefixes(t *testing.T) {
	const msg = "Engine 000: Avg prompt throughput: 600.0 tokens/s, Avg generation throughput: 204.3 tokens/s, Running: 1 reqs, Waiting: 2 reqs, GPU KV cache usage: 0.3%, Prefix cache hit rate: 0.0%"
	for name, line := range map[string]string{
		"bare V1":                   "INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"path in the source":        "INFO 12-15 18:32:12 [v1/metrics/loggers.py:271] " + msg,
		"shortened path":            "INFO 12-15 18:32:12 [v1/.../metrics/loggers.py:271] " + msg,
		"V0":                        "INFO 12-15 18:32:12 metrics.py:349] " + msg,
		"process":                   "(APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"process with rank":         "(EngineCore_DP0 pid=2548211) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"two processes":             "(EngineCore_DP0 pid=1) (RayWorkerWrapper pid=2, ip=10.0.0.1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"colours":                   "\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"coloured level":            "\x1b[32mINFO\x1b[0m \x1b[90m12-15 18:32:12\x1b[0m \x1b[90m[loggers.py:259]\x1b[0m " + msg,
		"colours without escape":    "[0;36m(APIServer pid=2548211)[0;0m INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"colour right at the level": "[32mINFO[0m 12-15 18:32:12 [loggers.py:259] " + msg,
		"docker":                    "2026-12-15T18:32:12.331095044Z (APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"kubernetes runtime":        "2026-12-15T18:32:12.331095044Z stderr F (APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"kubectl":                   "[pod/vllm-0/server] (APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"journald":                  "Dec 15 18:32:12 host vllm[1234]: INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"compose":                   "vllm-1  | (APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"another date before":       "[2026-12-15 18:32:12] INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"year in the date":          "INFO 2026-12-15 18:32:12 [loggers.py:259] " + msg,
		"docker json":               `{"log":"\u001b[0;36m(APIServer pid=1)\u001b[0;0m INFO 12-15 18:32:12 [loggers.py:259] ` + msg + `\n","stream":"stderr","time":"2026-12-15T18:32:12.3Z"}`,
		"json formatter":            `{"timestamp": "2026-12-15T18:32:12.331", "level": "INFO", "logger": "vllm.v1.metrics.loggers", "message": "` + msg + `"}`,
		"python's usual form":       "2026-12-15 18:32:12,331 - INFO - " + msg,
		"python's with the logger":  "2026-12-15 18:32:12,331 - vllm.v1.metrics.loggers - INFO - " + msg,
		"another formatter":         "12/15/26 18:32:12 vllm: " + msg,
		"behind a progress bar":     "Capturing CUDA graphs: 100%|██████████| 83/83 [00:08<00:00, 10.00it/s](APIServer pid=1) INFO 12-15 18:32:12 [loggers.py:259] " + msg,
		"carriage return":           "INFO 12-15 18:32:12 [loggers.py:259] " + msg + "\r",
	} {
		d, tally := read(t, []byte(line+"\n"))
		if len(d.Samples) != 1 || tally.Understood != 1 {
			t.Errorf("%s: %d samples, %+v", name, len(d.Samples), *tally)
			continue
		}
		s := d.Samples[0]
		if s.Prompt != 600 || s.Generation != 204.3 || s.Running != 1 || s.Waiting != 2 || s.Usage != 0.003 || s.PrefixHits != 0 || s.Engine != 0 && name != "another formatter" {
			t.Errorf("%s: %+v", name, s)
		}
		if got := ClockText(s.Clock, d.Year); !strings.HasSuffix(got, "12-15 18:32:12") && name != "another formatter" {
			t.Errorf("%s: logged at %q", name, got)
		}
		if !Is("x", []byte(line)) {
			t.Errorf("%s is not recognised", name)
		}
		if len(d.Starts) != 1 || d.Starts[0].Engine != "vLLM" {
			t.Errorf("%s: the engine is not named: %+v", name, d.Starts)
		}
	}
}

// SGLang before 0.4 wrote the time of day alone: its lines are read, and when they were written is unknown.
func TestSGLangWithoutDate(t *testing.T) {
	d, tally := read(t, []byte(`[22:33:50 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.50 GB
[22:33:59 TP0] max_total_num_tokens=443832, max_prefill_tokens=16384, max_running_requests=4097, context_len=8192
[22:34:01] The server is fired up and ready to roll!
[22:35:01 DP1 TP0] Decode batch. #running-req: 1, #token: 40, token usage: 0.02, gen throughput (token/s): 5.23, #queue-req: 0
[22:35:01x] Decode batch
`))
	if tally.Understood != 4 || tally.Unknown != 1 {
		t.Errorf("%+v", *tally)
	}
	if len(d.Samples) != 1 || d.Samples[0].Engine != 1 || d.Samples[0].Generation != 5.23 || d.Samples[0].Clock != NoClock {
		t.Errorf("%+v", d.Samples)
	}
	if s := d.Starts[0]; s.MaxModelLen != 8192 || s.MaxNumSeqs != 4097 || s.DType != "bfloat16" {
		t.Errorf("%+v", s)
	}
}

// SGLang since 0.5.4 writes level and source file behind the date, in processes that are no scheduler; colours may stand
// behind the date too.
func TestSGLangWithSource(t *testing.T) {
	d, tally := read(t, []byte("[2026-02-17 23:50:06] INFO engine.py:156: server_args=ServerArgs(model_path='qwen/qwen2.5-0.5b-instruct', tp_size=2, dtype='auto')\n"+
		"[2026-02-17 23:50:07] WARNING model_config.py:1098: Transformers version 5.3.0 is used\n"+
		"\x1b[32m[2026-02-17 23:50:10 TP0]\x1b[0m Decode batch, #running-req: 3, #token: 40, token usage: 0.02, cuda graph: True, gen throughput (token/s): 5.23, #queue-req: 0\n"+
		"[2026-02-17 23:50:11] INFO without a source: server_args=ServerArgs(model_path='other/model')\n"))
	if s := d.Starts[0]; len(d.Starts) != 1 || s.Engine != "SGLang" || s.Model != "qwen/qwen2.5-0.5b-instruct" || s.TP != 2 {
		t.Errorf("%d starts, %+v", len(d.Starts), s)
	}
	if len(d.Samples) != 1 || d.Samples[0].Running != 3 || d.Samples[0].Generation != 5.23 {
		t.Errorf("%+v", d.Samples)
	}
	if tally.Understood != 2 || tally.Known != 2 {
		t.Errorf("%+v", *tally)
	}
}

// driven is a log as a log driver keeps it: each line in a JSON object.
func driven(t *testing.T, text []byte, key, end string) []byte {
	t.Helper()
	var out []byte
	for line := range bytes.Lines(text) {
		object, err := json.Marshal(map[string]string{key: string(bytes.TrimRight(line, "\n")) + end, "stream": "stderr", "time": "2026-12-15T18:32:12.331Z"})
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, object...), '\n')
	}
	return out
}

// A JSON formatter writes a record of several lines as one message: a table is read, a prompt is not.
func TestTableInOneMessage(t *testing.T) {
	d, _ := read(t, []byte(`{"timestamp": "2026-12-15T18:32:12", "message": "**CUDAGraph Stats:**\n\n| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |\n|---|---|---|---|---|\n| 3 | 4 | 1 | FULL | 20 |"}
{"timestamp": "2026-12-15T18:32:13", "message": "Received request x: prompt: 'hello\nAvg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s\n| 3 | 4 | 1 | FULL | 20 |'"}
`))
	rows := d.Graphs.Rows()
	if d.Graphs.Lines != 1 || len(rows) != 1 || rows[0].Count != 20 || rows[0].Padded != 4 || len(d.Samples) != 0 {
		t.Errorf("%d lines, %+v, %d samples", d.Graphs.Lines, rows, len(d.Samples))
	}
}

// A JSON formatter puts the level and the logger into fields: errors count, with their tracebacks, and so do responses.
// What a client wrote into a message is no field.
func TestLevelsInJSON(t *testing.T) {
	d, tally := read(t, []byte(`{"asctime": "2026-12-15 18:32:12", "levelname": "ERROR", "name": "vllm.v1.engine.core", "message": "EngineCore failed to start.\nTraceback (most recent call last):\n  File \"a.py\", line 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}
{"timestamp": "2026-12-15T18:34:12", "level": "INFO", "message": "Received request x: prompt: '\"level\": \"ERROR\"\ntorch.OutOfMemoryError: '"}
{"timestamp": "2026-12-15T18:33:12", "level": "critical", "message": "died unexpectedly"}
{"timestamp": "2026-12-15T18:34:12", "level": "error", "message": "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.2s/it]"}
{"timestamp": "2026-12-15T18:34:13", "level": "INFO", "logger": "uvicorn.access", "message": "10.0.0.1:5 - \"POST /v1/completions HTTP/1.1\" 200 OK"}
`))
	want := [Classes]int64{OutOfMemory: 1, ProcessDied: 1}
	if e := &d.Events; e.Count != want || e.Lines != 5 || e.Status[200] != 1 || tally.Understood != 4 || tally.Known != 1 {
		t.Errorf("errors %v in %d lines, responses %v, %+v", e.Count, e.Lines, e.Status, *tally)
	}
}

// A shipper gives what comes from stderr the level error. Where a line of that level says itself that it is none, no
// other line is one for its level alone; what is an error by its words still is.
func TestLevelsOfAShipper(t *testing.T) {
	const warning = `{"level": "error", "message": "/usr/lib/x.py:12: UserWarning: foo is deprecated"}` + "\n"
	const real = `{"level": "error", "message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}` + "\n"
	for shown, want := range map[string]int64{
		`{"level": "error", "message": "INFO:     Started server process [1]"}` + "\n":                                                1,
		`{"level": "error", "message": "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.2s/it]"}` + "\n": 1,
		`{"level": "info", "message": "INFO:     Started server process [1]"}` + "\n":                                                 2,
		`{"level": "error", "message": "the client sent INFO:     Started server process [1]"}` + "\n":                                2,
	} {
		d, _ := read(t, []byte(shown+warning+real))
		if e := &d.Events; e.Lines != want || e.Count[OutOfMemory] != 1 {
			t.Errorf("%s: errors %v in %d lines, want %d", shown, e.Count, e.Lines, want)
		}
	}
}

// The same text, packed, with another end of line, in UTF-16, or without an end, says the same.
func TestEncodings(t *testing.T) {
	plain, err := os.ReadFile("../../../../testdata/evidence/vllm.log")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := read(t, plain)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	wide := func(order func(c uint16) []byte) []byte {
		out := order(0xfeff)
		for _, c := range utf16.Encode([]rune(string(plain))) {
			out = append(out, order(c)...)
		}
		return out
	}
	for name, text := range map[string][]byte{
		"gzip":                 packed.Bytes(),
		"byte order mark":      append([]byte("\xef\xbb\xbf"), plain...),
		"windows":              bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n")),
		"no newline at end":    bytes.TrimRight(plain, "\n"),
		"UTF-16 little endian": wide(func(c uint16) []byte { return []byte{byte(c), byte(c >> 8)} }),
		"UTF-16 big endian":    wide(func(c uint16) []byte { return []byte{byte(c >> 8), byte(c)} }),
		"docker":               driven(t, plain, "log", "\n"),
		"docker of docker":     driven(t, driven(t, plain, "log", "\n"), "log", "\n"),
		"journald as JSON":     driven(t, plain, "MESSAGE", ""),
		"Google Cloud":         driven(t, plain, "textPayload", ""),
	} {
		got, tally := read(t, text)
		in := file.Input{Path: filepath.Join(t.TempDir(), "x")}
		if err := os.WriteFile(in.Path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if head, err := in.Head(); err != nil || !Is("x", head) {
			t.Errorf("%s: not recognised (%v)", name, err)
		}
		// in records of several lines
		if got.Graphs.Lines != want.Graphs.Lines || len(got.Graphs.Rows()) != len(want.Graphs.Rows()) ||
			len(want.Graphs.Rows()) == 0 {
			t.Errorf("%s: %d lines of CUDA graphs, want %d", name, got.Graphs.Lines, want.Graphs.Lines)
		}
		if len(got.Samples) != len(want.Samples) || got.Iterations.Len() != want.Iterations.Len() || got.Start().Model != want.Start().Model || len(got.Requests.List) != 3 || tally.Records != 82 {
			t.Errorf("%s: %d samples, %d iterations, %d lines", name, len(got.Samples), got.Iterations.Len(), tally.Records)
		}
	}
}

// Lines that are cut short, run into each other or never end are counted, and the lines around them are read.
func TestDamage(t *testing.T) {
	const good = "INFO 12-15 18:32:12 [core.py:348] Iteration(7): 1 context requests, 100 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 36.68 ms\n"
	const at = "INFO 12-15 18:32:12 [core.py:348] "
	long := strings.Repeat("x", 3<<20)
	nested := []byte(good)
	for range maxDrivers + 8 { // too deep for a header near the beginning
		nested = driven(t, nested, "log", "\n")
	}
	if Is("x", nested) {
		t.Error("a line inside a line inside a line is looked for without end")
	}
	for name, c := range map[string]struct {
		text       string
		iterations int
		warning    string
	}{
		"cut short":         {good + at + "Iteration(8): 1 context requ\n" + good, 2, "log_malformed"},
		"two writers":       {good + at + "Iteration(8): 1 context INFO 12-15 18:32:12 [core.py:348] Iteration(9): 1 cont\n" + good, 2, "log_malformed"},
		"gigantic line":     {good + long + "\n" + good, 2, "log_long_lines"},
		"gigantic last":     {good + long, 1, "log_long_lines"},
		"gigantic record":   {good + at + long + "\n" + good, 2, "log_long_lines"},
		"NULs":              {good + strings.Repeat("\x00", 5000) + "\n" + good, 2, ""},
		"not UTF-8":         {good + "\xff\xfe\xfd\n" + good, 2, ""},
		"huge numbers":      {good + at + "Iteration(99999999999999999999): 1 context requests\n", 1, "log_malformed"},
		"nested drivers":    {good + string(nested), 1, ""},
		"empty":             {"", 0, ""},
		"line ends only":    {"\n\r\n\n", 0, ""},
		"broken statistics": {good + at + "Avg prompt throughput: tokens/s, Avg\n", 1, "log_malformed"},
		"broken batch":      {good + at + "Decode batch, #runn\n", 1, "log_malformed"},
		"broken details":    {good + at + "MFU details: {\"a\": \n", 1, "log_malformed"},
	} {
		d, tally := read(t, []byte(c.text))
		if d.Iterations.Len() != c.iterations {
			t.Errorf("%s: %d iterations, want %d (%+v)", name, d.Iterations.Len(), c.iterations, *tally)
		}
		if !warned(d.Warnings(), c.warning) {
			t.Errorf("%s: warnings %v, want %q", name, d.Warnings(), c.warning)
		}
	}
}

func warned(list []report.Warning, code string) bool {
	if code == "" {
		return len(list) == 0
	}
	for _, w := range list {
		if w.Code == code {
			return true
		}
	}
	return false
}

// A packed log that ends early is read up to there.
func TestTruncatedGzip(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 20000 {
		fmt.Fprintf(z, "INFO 12-15 18:32:12 [core.py:348] Iteration(%d): 1 context requests, %d context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 36.68 ms\n", i, i*i%9973)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ := read(t, packed.Bytes()[:packed.Len()/2])
	if n := d.Iterations.Len(); n < 5000 || n > 15000 || !warned(d.Warnings(), "log_damaged") {
		t.Errorf("%d iterations, warnings %v", n, d.Warnings())
	}
}

// What clients send is never taken for what the server says.
func TestPromptsAreNotRead(t *testing.T) {
	d, _ := read(t, []byte("INFO 12-15 18:32:12 [logger.py:49] Received request cmpl-1: prompt: 'INFO 12-15 18:32:12 [core.py:348] Iteration(8): 1 context requests, 5 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 1.00 ms', params: None\n"+
		"(APIServer pid=1) INFO 12-15 18:32:12 [logger.py:49] Avg what: Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s\n"))
	if d.Iterations.Len() != 0 || len(d.Samples) != 0 || d.Requests.Received != 1 {
		t.Errorf("%d iterations, %d samples, %d requests", d.Iterations.Len(), len(d.Samples), d.Requests.Received)
	}
}

// Timestamps without a year go on over New Year.
// Libraries write lines of their own into the log of a server, with a year where it writes none or the other way round. From the first
// line to the one that says that the server is ready it is 40 s in both, and 3 s over the turn of a year.
func TestYearsMixed(t *testing.T) {
	const ready, fired = "INFO:     Application startup complete.\n", "The server is fired up and ready to roll!\n"
	for name, c := range map[string]struct {
		text string
		want float64
		year bool
	}{
		"a library's year in a log without": {"INFO 11-20 08:00:00 api_server.py:585] vLLM API server version 0.6.4.post1\n[2024-11-20 08:00:30,753] LMCache INFO: Reqid: x\n" +
			"2024-11-20 08:00:35,692 - INFO - flashinfer.jit: starts\nINFO 11-20 08:00:40 x.py:1] y\n" + ready, 40, false},
		"no year in a log with years": {"[2026-03-23 02:28:00] server_args=ServerArgs(model_path='a/b')\nINFO 03-23 02:28:20 [__init__.py:244] Automatically detected platform cuda.\n[2026-03-23 02:28:40] " + fired, 40, true},
		"no year in its first line":   {"INFO 03-23 02:28:00 [__init__.py:244] Automatically detected platform cuda.\n[2026-03-23 02:28:20] server_args=ServerArgs(model_path='a/b')\n[2026-03-23 02:28:40] " + fired, 40, false},
		"the turn of a year":          {"[2025-12-31 23:59:58] server_args=ServerArgs(model_path='a/b')\nINFO 12-31 23:59:59 [x.py:1] y\nINFO 01-01 00:00:00 [x.py:1] y\n[2026-01-01 00:00:01] " + fired, 3, true},
	} {
		d, _ := read(t, []byte(c.text))
		if got := d.Starts[0].Ready; got != c.want || d.Year != c.year {
			t.Errorf("%s: ready after %v s, year %v; want %v s, %v", name, got, d.Year, c.want, c.year)
		}
	}
}

func TestNewYear(t *testing.T) {
	var c calendar
	at := func(text string) int64 {
		clock, year, _, ok := clockText([]byte(text))
		if !ok {
			t.Fatalf("%q is no time", text)
		}
		return c.at(clock, year)
	}
	before, after := at("12-31 23:59:50"), at("01-01 00:00:10")
	if after-before != 20 || ClockText(after, false) != "01-01 00:00:10" {
		t.Errorf("%d seconds, then %s", after-before, ClockText(after, false))
	}
	if late := at("12-31 23:59:50"); late-after != 365*86400+86400-20 && ClockText(late, false) != "12-31 23:59:50" {
		t.Errorf("a year later: %d, %s", late-after, ClockText(late, false))
	}
	c = calendar{}
	if got := at("2026-08-01 23:37:40"); ClockText(got, true) != "2026-08-01 23:37:40" {
		t.Errorf("%s", ClockText(got, true))
	}
	for _, bad := range []string{"", "13-01 00:00:00", "1-1 1:1:1", "12-31", "12-31 24:00:00", "aa-bb cc:dd:ee", "1812-01-01 00:00:00"} {
		if _, _, _, ok := clockText([]byte(bad)); ok {
			t.Errorf("%q was taken for a time", bad)
		}
	}
}

// Only what cannot tell where a model lies, or who owns the machine, is taken of its name.
func TestModelID(t *testing.T) {
	for in, want := range map[string]string{
		"openai/gpt-oss-120b":              "openai/gpt-oss-120b",
		"facebook/opt-125m":                "facebook/opt-125m",
		"gpt2":                             "gpt2",
		"/home/jane.doe/models/llama-3-8b": "llama-3-8b",
		"./models/llama":                   "llama",
		"models/a/b/llama":                 "llama",
		"~/llama":                          "llama",
		"/home/jane/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B/snapshots/a09a35458c702b33eeacc393d103063234e8bc28": "Qwen/Qwen2.5-7B",
		`C:\Users\jane\llama`:          "llama",
		"s3://bucket/key?token=secret": "",
		"https://user:pw@host/model":   "",
		"llama\x1b[31m":                "",
		"":                             "",
		"None":                         "",
		strings.Repeat("a", 200):       "",
		"/models/llama/":               "llama",
		"<script>":                     "",
	} {
		if got := ModelID(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}

// Ids that a client chose may be anything, and are not shown.
func TestPublicID(t *testing.T) {
	for id, shown := range map[string]bool{
		"cmpl-98e4a319dfdf479b-0": true, "chatcmpl-8f6cf33d2f6a4b6c8ac4cf6ab1c3a0de": true, "embd-00-11": true, "98e4a319dfdf479b": true,
		"chatcmpl-tool-8f6cf33d": true,
		"jane.doe":               false, "cmpl-jane": false, "order 66": false, "": false, "cmpl-": false, "chatcmpl-sk-live-abc": false,
	} {
		r := Request{ID: id}
		if got := r.PublicID() == id && id != ""; got != shown {
			t.Errorf("%q shown: %v, want %v", id, got, shown)
		}
	}
}

func TestIterationForms(t *testing.T) {
	for text, want := range map[string]uint32{
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 36.68 ms":                        36680,
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 0.00 ms":                         0,
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 5 ms":                            5000,
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 5.5ms, GPU KV cache usage: 3.1%": 5500,
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 1.23456 ms":                      1235,
		"0): 1 context requests, 1 context tokens, 0 generation requests, 0 generation tokens, total time, elapsed time: 1.2 ms":                        1200,
		"0): 1 context requests, 1,234 context tokens, 0 generation requests, 0 generation tokens, iteration elapsed time: 2.25 ms":                     2250,
	} {
		row, ok := parseIteration([]byte(text))
		if !ok || row.micros != want || row.Context != 1 {
			t.Errorf("%q: %+v, %v", text, row, ok)
		}
	}
}

// A count that no engine reaches does not turn negative.
func TestSpecCountsTooMuch(t *testing.T) {
	d, _ := read(t, []byte("INFO 03-01 10:00:00 [metrics.py:86] SpecDecoding metrics: Accepted: 99999999999999999999 tokens, Drafted: 3 tokens\n"))
	if len(d.Specs) != 1 || d.Specs[0].Accepted < 0 || d.Specs[0].Drafted != 3 {
		t.Errorf("%+v", d.Specs)
	}
}

// The logs of facts/vllm-logs.md: what is read of each, and that hardly a line is of no known form.
func TestSharedLogs(t *testing.T) {
	for name, want := range map[string]struct {
		format                       string
		samples, iterations, unknown int64
	}{
		"vllm_0.15.0_server.log":              {"vLLM V1", 12, 7241, 1},
		"vllm_0.25.1_a.log":                   {"vLLM V1", 65, 0, 3},
		"vllm_0.25.1_b.log":                   {"vLLM V1", 126, 0, 0},
		"sglang.log":                          {"SGLang", 113, 0, 12},
		"excerpt_vllm022_cudagraph_stats.log": {"vLLM", 2, 2, 0},
		"excerpt_vllm_pr30738_mfu.log":        {"vLLM", 4, 0, 0},
		"excerpt_vllm_v0_cpu_prefix.log":      {"vLLM", 2, 0, 0},
	} {
		path := filepath.Join("../../../../../shared/logs", name)
		in, err := file.New(path, name)
		if err != nil {
			t.Skip("no shared/logs: the real logs are not part of the project")
		}
		head, err := in.Head()
		if err != nil || !Is(name, head) {
			t.Errorf("%s is not recognised (%v)", name, err)
		}
		d, err := Read(context.Background(), []file.Input{in})
		if err != nil {
			t.Fatal(err)
		}
		if in.Tally.Format != want.format || int64(len(d.Samples)) != want.samples || int64(d.Iterations.Len()) != want.iterations || in.Tally.Unknown > want.unknown || len(d.Warnings()) > 0 {
			t.Errorf("%s: %d samples, %d iterations, %+v, %v", name, len(d.Samples), d.Iterations.Len(), *in.Tally, d.Warnings())
		}
	}
}

// What a container prints before its server starts may be longer than what tells a file of unknown kind.
func TestLateStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	text := strings.Repeat("Downloading: 42%\n", 2*file.HeadBytes/17)
	for rest, want := range map[string]bool{"": false, "INFO 12-15 18:32:12 [loggers.py:259] Engine 000: Avg prompt throughput: 1.0 tokens/s\n": true} {
		if err := os.WriteFile(path, []byte(text+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, "server.log")
		if err != nil {
			t.Fatal(err)
		}
		head, err := in.Head()
		if err != nil || Is("server.log", head) || in.Any(IsLine) != want {
			t.Errorf("with %q at its end: at its start %v, within %v, want %v (%v)", rest, Is("server.log", head), in.Any(IsLine), want, err)
		}
	}
}

// Nothing else is taken for a log.
func TestIsNot(t *testing.T) {
	for _, text := range []string{"", "hello\n", "# TYPE vllm:x counter\nvllm:x 1\n", "\"ID\",\"Process ID\"\n", "{\"schema\": \"explain.report/1\"}\n", "[2026-08-01 23:37:40] anything that has a date\n",
		"INFO something without a date\n", "2026-12-15 18:32:12,331 - INFO - another program\n", strings.Repeat("\x00", 100)} {
		if Is("server.log", []byte(text)) {
			t.Errorf("%q was taken for a log", text)
		}
	}
}

// Numbers that the log does not state stay unknown through everything that is computed of them.
func TestUnknownStaysUnknown(t *testing.T) {
	s := newStart()
	if !math.IsNaN(s.KVBytesPerToken()) || !math.IsNaN(s.KVBytesPerRequest()) || s.Parallelism() != "" {
		t.Errorf("%v, %v, %q", s.KVBytesPerToken(), s.KVBytesPerRequest(), s.Parallelism())
	}
}

// The page names the newest version whose logs are read here.
func TestPageNamesTheNewestLog(t *testing.T) {
	page, err := os.ReadFile("../evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	stated := regexp.MustCompile(`tried on 0\.6 to 0\.(\d+), V0 and V1`).FindSubmatch(page)
	if stated == nil {
		t.Fatal("the page states no versions")
	}
	logs, _ := filepath.Glob("../../../../../shared/logs/vllm_0.*.log")
	newest := 0
	for _, log := range logs {
		minor := regexp.MustCompile(`vllm_0\.(\d+)\.`).FindStringSubmatch(log)
		n, _ := strconv.Atoi(minor[1])
		newest = max(newest, n)
	}
	if len(logs) > 0 && strconv.Itoa(newest) != string(stated[1]) {
		t.Errorf("the page says 0.%s, and the newest log is of 0.%d", stated[1], newest)
	}
}
