//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // to damage rows

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// damaged is how many damaged files of each kind TestLongRun reads, and a fifth of the states that TestNoAttackerPasses
// draws: 4, or 200 with -long. Before a release:
//
//	go test ./cmd/explain -run TestLongRun -timeout 0 -args -damaged 2000
//	go test -race ./cmd/explain -run TestLongRun -timeout 0 -args -damaged 100
var (
	damagedN = flag.Int("damaged", 0, "damaged traces, and damaged texts, of TestLongRun; 0: as many as -long says")
	longSeed = flag.Uint64("long-seed", 18, "which damage TestLongRun does")
)

func damaged() int {
	if *damagedN > 0 {
		return *damagedN
	}
	return longtest.N(4, 200)
}

// longCommands read a trace. M is the damaged file, T a sound one, R a sound report, O a folder or file to write.
var longCommands = []string{
	"report M --out O", "M --format json", "M --format md", "M --format profilemate", "M --steady", "M --window nvtx:step", "M --unit graph", "M --print-schema",
	"M --all-rows --out O", "M --evidence EVIDENCE --out O", "M --perfetto O", "diff T M", "diff M T --out O", "diff M M --format json", "gate --base T --head M --out O",
	"gate --head M --out O", "calibrate T M --out O", "scrub M O", "scrub --names hash M O", "partial M --out O", "merge M T --out O", "report M --top 5 --ncu-targets O", "whatif M --speedup category:gemm=2x",
	"whatif M --host-free", "policy init M T", "policy test POLICY --on M", "history add M --store O --commit 0123456789abcdef0123456789abcdef01234567 --repository o/r --branch main",
	"mcp", "report M --from 0ms --to 200ms --top 3", "capture resume D",
}

// longTexts are the texts that explain reads, and the commands that read each. F is the folder that the text is in.
func longTexts(t *testing.T, dir string) map[string][]string {
	texts := map[string][]string{
		"../../testdata/evidence/vllm.log":            {"report --server-log M --out O", "report T --evidence F", "diff M M"},
		"../../testdata/evidence/metrics.prom":        {"report --prometheus M", "report T --prometheus M --out O"},
		"../../testdata/evidence/ncu/raw.csv":         {"report --ncu M --out O", "report T --ncu M"},
		"../../testdata/evidence/ncu/details.csv":     {"report --ncu M", "diff M M --out O"},
		"../../testdata/evidence/load/load.json":      {"report --evidence M", "diff M M --out O", "gate --base M --head M --out O"},
		filepath.Join(dir, "report.json"):             {"report M", "report M --format html", "diff T M", "diff M T --out O", "gate --base M --head T --out O", "merge M --out O", "calibrate M T", "policy init M T", "history add M --store O --commit 0123456789abcdef0123456789abcdef01234567 --repository o/r --branch main", "whatif M --host-free"},
		filepath.Join(dir, "comparison.json"):         {"gate comment F --out O", "report M", "gate comment --merge F F"},
		filepath.Join(dir, "policy.yaml"):             {"policy check M", "policy explain unit.time.p50 --policy M", "diff T T --policy M", "gate --base T --head T --policy M --out O", "policy test M --on T"},
		filepath.Join(dir, "noise.json"):              {"diff T T --noise M", "gate --base T --head T --noise M --out O"},
		filepath.Join(dir, "phases.json"):             {"T --phase-map M", "report T --phase-map M --out O"},
		filepath.Join(dir, "kernels.yaml"):            {"T --kernel-map M", "diff T T --kernel-map M"},
		filepath.Join(dir, "x.partial"):               {"merge M --out O", "merge M T"},
		filepath.Join(dir, "calls.jsonl"):             {"mcp"},
		filepath.Join(dir, "history.db"):              {"history list --store M", "history check --store M", "history page --store M --out O", "history list --store M --format ndjson", "history list --store M 0123", "history merge --store O M", "diff T T --history M", "history prune --store M --before 2020-01-01"},
		"../../testdata/evidence/session":             {"report --evidence F --out O", "report T --evidence F"},
		"../../testdata/evidence/perfopt":             {"report --evidence F --out O", "report T --evidence F"},
		"../../examples/from-the-three-tools.md":      {"report --evidence M", "report M", "diff M T", "load --url http://127.0.0.1:1 --dataset M --num-requests 1 --out O"},
		filepath.Join(dir, "metadata", "config.json"): {"report T --evidence F"},
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.yaml", "version: 1\npreset: llm-serving\nstats: {alpha: 0.05, min_captures: 1}\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 3%, abs: 200us}}\n"+
		"  - {id: attn, metric: kernel.time_per_unit, match: {regex: '^(flash|fmha)'}, level: error, regress: {rel: 5%}}\nbudgets:\n  - {id: idle, metric: gpu.idle_ratio, max: 15%, level: error}\n"+
		"waivers:\n  - {rule: attn, match: {regex: fmha_v2}, ceiling: 12%, expires: 2099-12-31, issue: '#412', reason: fp8}\n")
	write("phases.json", `{"decode": ["^decode", "step"], "prefill": ["prefill"]}`)
	write("kernels.yaml", "my_router: moe_route\n\"re:^acme_\": gemm\n")
	write("calls.jsonl", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n"+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"report","arguments":{"file":"tiny.sqlite"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"metrics","arguments":{"file":"tiny.sqlite","match":"gpu","limit":3}}}`+"\n")
	write("metadata/config.json", `{"model_type":"llama","hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":32000,"torch_dtype":"bfloat16"}`)
	return texts
}

// TestLongRun damages traces and texts, and reads them with every command. None panics, hangs, changes what it read, or leaves anything
// beside what it was asked to write.
func TestLongRun(t *testing.T) {
	l := newLongRun(t)
	traces, err := filepath.Glob("../../testdata/*.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	small := traces[:0]
	for _, path := range traces {
		if info, err := os.Stat(path); err == nil && info.Size() < 400_000 {
			small = append(small, path)
		}
	}
	for i := range damaged() {
		from := small[l.rng.IntN(len(small))]
		l.read(i, from, longCommands[i%len(longCommands)])
	}
	traced := l.runs
	texts := longTexts(t, l.sound)
	l.have("report", l.trace, "--out", filepath.Join(l.sound, "reported"))
	l.copyTo("reported/report.json", "report.json")
	l.have("diff", l.trace, l.trace, "--out", filepath.Join(l.sound, "compared"))
	l.copyTo("compared/comparison.json", "comparison.json")
	l.have("calibrate", "../../testdata/base.sqlite", "../../testdata/head.sqlite", "--out", filepath.Join(l.sound, "noise.json"))
	l.have("partial", l.trace, "--out", filepath.Join(l.sound, "x.partial"))
	l.have("history", "add", "../../testdata/base.sqlite", "--store", filepath.Join(l.sound, "history.db"), "--commit", strings.Repeat("01", 20), "--repository", "o/r", "--branch", "main")
	var names []string
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range damaged() {
		name := names[i%len(names)]
		commands := texts[name]
		l.read(i, name, commands[i/len(names)%len(commands)])
	}
	t.Logf("%d damaged traces and %d damaged texts: exit codes %v; the longest took %.1f s (%s)", traced, l.runs-traced, l.codes, l.longest.Seconds(), l.slow)
	if l.runs != 2*damaged() {
		t.Errorf("%d runs", l.runs)
	}
	if n := runtime.NumGoroutine(); n > 100 {
		t.Errorf("%d goroutines are left", n)
	}
}

// longRun is the state of TestLongRun.
type longRun struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string // of the damaged file, new for each
	sound   string // sound inputs
	temp    string // $TMPDIR
	keep    string // for what shows a defect
	trace   string
	runs    int
	codes   [5]int
	longest time.Duration
	slow    string
}

func newLongRun(t *testing.T) *longRun {
	l := &longRun{t: t, rng: rand.New(rand.NewPCG(*longSeed, 0)), sound: t.TempDir(), temp: t.TempDir(), keep: os.TempDir()}
	t.Setenv("TMPDIR", l.temp)
	l.trace = filepath.Join(l.sound, "tiny.sqlite")
	if err := os.WriteFile(l.trace, read(t, "../../testdata/tiny.sqlite"), 0o644); err != nil {
		t.Fatal(err)
	}
	return l
}

// have makes a sound input.
func (l *longRun) have(args ...string) {
	l.t.Helper()
	if code, said := runHere(l.t, args...); code == exitUsage || code == exitInput {
		l.t.Fatalf("explain %s: exit code %d: %s", strings.Join(args, " "), code, said)
	}
}

func (l *longRun) copyTo(from, to string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.sound, to), read(l.t, filepath.Join(l.sound, from)), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// read damages a file, or one file of a folder, and runs a command on it.
func (l *longRun) read(i int, from, command string) {
	t := l.t
	l.dir = t.TempDir()
	in := filepath.Join(l.dir, "in")
	damaged := filepath.Join(in, filepath.Base(from))
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.CopyFS(in, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		var files []string
		_ = filepath.WalkDir(in, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		damaged = files[l.rng.IntN(len(files))]
	} else {
		if err := os.MkdirAll(in, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(damaged, read(t, from), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sqlite := strings.HasSuffix(damaged, ".sqlite") || strings.HasSuffix(damaged, ".db")
	if sqlite && l.rng.IntN(2) == 0 {
		l.damageRows(damaged)
	} else if err := os.WriteFile(damaged, l.damage(read(t, damaged), sqlite), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(l.dir, "out")
	args := strings.Fields(command)
	stdin := ""
	for j, a := range args {
		switch a {
		case "M":
			args[j] = damaged
		case "T":
			args[j] = l.trace
		case "O":
			args[j] = out
		case "F":
			args[j] = in
		case "EVIDENCE":
			args[j] = "../../testdata/evidence"
		case "POLICY":
			args[j] = filepath.Join(l.dir, "policy.yaml")
			_ = os.WriteFile(args[j], []byte("version: 1\npreset: llm-serving\n"), 0o644)
		case "D": // what a capture leaves that failed after the recording
			args[j] = filepath.Join(l.dir, "x.failed")
			_ = os.MkdirAll(filepath.Join(args[j], "logs"), 0o755)
			_ = os.WriteFile(filepath.Join(args[j], "trace.sqlite"), read(t, damaged), 0o644)
			_ = os.WriteFile(filepath.Join(args[j], "logs", "children.json"), []byte("[]"), 0o644)
		}
	}
	if args[0] == "mcp" {
		stdin = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"file":%q}}}`+"\n", filepath.Base(damaged))
		args = append(args, in)
		if strings.HasSuffix(damaged, ".jsonl") {
			stdin, args[1] = string(read(t, damaged)), filepath.Dir(l.trace)
		}
	}
	changes := command == "history prune --store M --before 2020-01-01" // its job
	before := l.state(in)
	begun := time.Now()
	code, said, panicked := l.run(stdin, args...)
	took := time.Since(begun)
	what := fmt.Sprintf("seed %d, %d of %s: explain %s", *longSeed, i, filepath.Base(from), command)
	l.runs++
	if took > l.longest {
		l.longest, l.slow = took, what
	}
	failed := false
	fail := func(format string, more ...any) {
		failed = true
		t.Errorf("%s: %s", what, fmt.Sprintf(format, more...))
	}
	switch {
	case panicked != "":
		fail("%s", panicked)
	case code < 0 || code > 4:
		fail("exit code %d", code)
	default:
		l.codes[code]++
	}
	if strings.Contains(said, "unknown flag") || strings.Contains(said, "unknown command") {
		fail("the test is wrong: %.200s", said)
	}
	if strings.Contains(said, "explain failed here, please report it") || strings.Contains(said, "goroutine ") || strings.Contains(said, "runtime error") {
		fail("it says: %.600s", said)
	}
	if took > 2*time.Minute {
		fail("took %s", took)
	}
	if after := l.state(in); after != before && !changes {
		fail("the input, or what is beside it, was\n%sand is\n%s", before, after)
	}
	if left := explaintest.FilesIn(t, l.temp); len(left) > 0 {
		fail("left %q in $TMPDIR", left)
		for _, name := range left {
			_ = os.RemoveAll(filepath.Join(l.temp, name))
		}
	}
	for _, name := range explaintest.FilesIn(t, l.dir) {
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") {
			fail("left %s", name)
		}
	}
	if failed {
		kept := filepath.Join(l.keep, fmt.Sprintf("explain-long-%d-%d-%s", *longSeed, i, filepath.Base(damaged)))
		_ = os.WriteFile(kept, read(t, damaged), 0o644)
		t.Logf("kept as %s", kept)
	}
	_ = os.RemoveAll(l.dir)
}

// run is explain with a standard input; panicked is what it panicked with.
func (l *longRun) run(stdin string, args ...string) (code int, said, panicked string) {
	var out bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			panicked = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	code = run(context.Background(), args, &env{In: strings.NewReader(stdin), Out: &out, Err: &out, Getenv: func(string) string { return "" }})
	return code, out.String(), ""
}

// state is every file of a folder with a hash of its content.
func (l *longRun) state(dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %x\n", strings.TrimPrefix(path, dir), sha256.Sum256(text))
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

// hostile are texts that stand where others are expected.
var hostile = []string{"\x00", "1e999", "-9223372036854775809", "18446744073709551616", "NaN", "-0", "null", "{", "[[[[[[[[[[[[[[[[", "\u202e", "\xff\xfe", "\"", "\\", ",,,,", "\r\n\r\n", "%s%n", "../../etc/passwd",
	"<script>", "::error::", "- &a [*a, *a]", "\x1b[2J", "0x7fffffffffffffff", "1_000", "", "true", ": ", "'''"}

// damage changes bytes of a file: some, a stretch of them, or their order.
func (l *longRun) damage(b []byte, pages bool) []byte {
	b = bytes.Clone(b)
	at := func() int { return l.rng.IntN(len(b) + 1) }
	for range 1 + l.rng.IntN(6) {
		if len(b) < 2 {
			return b
		}
		switch l.rng.IntN(8) {
		case 0: // one byte
			b[l.rng.IntN(len(b))] = byte(l.rng.Uint32())
		case 1: // one bit, near the start, or near the start of a page
			i := l.rng.IntN(min(len(b), 128))
			if pages && len(b) > 4096 && l.rng.IntN(2) == 0 {
				i += l.rng.IntN(len(b)/4096) * 4096 % (len(b) - 128)
			}
			b[i] ^= 1 << l.rng.IntN(8)
		case 2: // cut
			b = b[:at()]
		case 3: // a stretch is lost, or in a file of pages zero
			i := at()
			j := min(len(b), i+l.rng.IntN(4096))
			if pages {
				clear(b[i:j])
			} else {
				b = append(b[:i], b[j:]...)
			}
		case 4: // a stretch is doubled
			i := at()
			j := min(len(b), i+l.rng.IntN(4096))
			if pages && len(b) > 8192 {
				copy(b[l.rng.IntN(len(b)/4096)*4096:], b[i/4096*4096:min(len(b), i/4096*4096+4096)])
			} else {
				b = append(b[:j:j], append(bytes.Clone(b[i:j]), b[j:]...)...)
			}
		case 5: // something else stands there
			i, h := at(), hostile[l.rng.IntN(len(hostile))]
			if pages {
				copy(b[i:], h)
			} else {
				b = append(b[:i:i], append([]byte(h), b[i:]...)...)
			}
		case 6: // many of one byte
			i := at()
			fill := bytes.Repeat([]byte{byte(l.rng.Uint32())}, 1+l.rng.IntN(3000))
			if pages {
				copy(b[i:], fill)
			} else {
				b = append(b[:i:i], append(fill, b[i:]...)...)
			}
		case 7: // a number is another
			if i := bytes.IndexAny(b[at():], "0123456789"); i >= 0 && !pages {
				h := hostile[l.rng.IntN(len(hostile))]
				b = append(b[:i:i], append([]byte(h), b[min(len(b), i+1):]...)...)
			}
		}
	}
	return b
}

// damageRows changes values of rows, and drops or renames columns and tables, where the file is still one that SQLite writes.
func (l *longRun) damageRows(path string) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	list := func(query string) (names []string) {
		rows, err := db.Query(query)
		if err != nil {
			return nil
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if rows.Scan(&name) == nil {
				names = append(names, name)
			}
		}
		return names
	}
	values := []string{"NULL", "-1", "0", "9223372036854775807", "-9223372036854775808", "1e308", "-1e308", "0.5", "'text'", "''", "x'00ff'", "zeroblob(5000)", "'9'||hex(randomblob(40))",
		"4294967296", "start", "end", "deviceId + 5000", "random()", "abs(random()) % 100000000"}
	for range 1 + l.rng.IntN(3) {
		tables := list("select name from sqlite_master where type = 'table'")
		if len(tables) == 0 {
			return
		}
		table := tables[l.rng.IntN(len(tables))]
		columns := list("select name from pragma_table_info('" + table + "')")
		if len(columns) == 0 {
			continue
		}
		column := columns[l.rng.IntN(len(columns))]
		do := fmt.Sprintf(`update %q set %q = %s where rowid %% %d = 0`, table, column, values[l.rng.IntN(len(values))], 1+l.rng.IntN(7))
		switch l.rng.IntN(10) {
		case 0:
			do = fmt.Sprintf("drop table %q", table)
		case 1:
			do = fmt.Sprintf("alter table %q drop column %q", table, column)
		case 2:
			do = fmt.Sprintf("alter table %q rename column %q to %q", table, column, column+"_")
		case 3:
			do = fmt.Sprintf("delete from %q where rowid %% %d = 0", table, 1+l.rng.IntN(4))
		case 4:
			do = fmt.Sprintf("insert into %q select * from %q", table, table)
		}
		_, _ = db.Exec(do) // some are refused, which is as well
	}
}
