//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// planted are secrets that stand somewhere in the inputs of a test.
type planted struct {
	where map[string]string // by the secret
	n     int
}

// token is a secret of a form by which tokens are known; it is in names that reports show.
func (p *planted) token(where string) string {
	p.n++
	id := fmt.Sprintf("%020dx%03d", 7, p.n)
	forms := []string{"hf_%s", "sk-live-%s", "ghp_%s", "nvapi-%s", "glpat-%s", "npm_%s", "r8_%s", "github_pat_%s", "https://u:%s@host/x", "https://h/c?sig=%s", "Authorization: Bearer %s"}
	p.where[id] = where
	return fmt.Sprintf(forms[p.n%len(forms)], id)
}

// plain is a secret that looks like any word; it is where no report looks.
func (p *planted) plain(where string) string {
	p.n++
	s := fmt.Sprintf("CANARY%03dhunter", p.n)
	p.where[s] = where
	return s
}

// check wants none of the secrets in a text. It looks for one of them only where there is what they all hold.
func (p *planted) check(t *testing.T, what string, text []byte) {
	t.Helper()
	if !bytes.Contains(text, []byte("CANARY")) && !bytes.Contains(text, []byte(fmt.Sprintf("%020dx", 7))) {
		return
	}
	for s, where := range p.where {
		if bytes.Contains(text, []byte(s)) {
			i := bytes.Index(text, []byte(s))
			t.Errorf("%s shows the secret of %s: …%s…", what, where, text[max(0, i-60):min(len(text), i+60)])
		}
	}
}

// trace plants secrets in a trace of a server: in every column that no report is made of, in what NVTX has beside ranges, in threads that do
// nothing, and as tokens in every kind of name that a report shows.
func (p *planted) trace(t *testing.T, opts ...tracetest.Option) string {
	b := tracetest.Serving(opts...)
	proc := b.Process(77, "/srv/"+p.plain("the path of a program")+"/"+p.token("the name of a program"))
	th := proc.Thread(77, p.token("a thread that waits"))
	at := int64(1_000_000_000)
	for i := range 8 {
		start := at + int64(i)*1_000_000
		th.Range("step "+p.token("a range"), start, start+900_000)
		th.RangeByID(p.token("a range by id")+" inner", start+1000, start+800_000)
		th.StartEnd("load "+p.token("a start/end range"), start, start+700_000)
		th.Launch(fmt.Sprintf("void kernel_%d<%q>(int)", i, p.token("a kernel")), start+2000, start+5000, tracetest.Kernel{Start: start + 10_000, End: start + 400_000})
		th.StreamSynchronize(start+6000, start+410_000, 0, 7)
		th.Mark("mark "+p.plain("a mark"), start+1)
		for kind, name := range map[tracetest.NVTXType]string{33: "a category", 39: "a resource", 75: "a domain", 76: "a thread in NVTX"} {
			for _, byID := range []bool{false, true} {
				b.NVTX(tracetest.NVTX{Thread: th, Type: kind, Start: start, End: tracetest.Open, Text: p.plain(name), ByID: byID})
			}
		}
		proc.Thread(1000+int64(i), p.plain("a thread that does nothing"))
	}
	for _, c := range b.Canaries(func(table, column string) string { return p.plain(table + "." + column) }) {
		if p.where[c.Text] == "" {
			t.Fatalf("%s.%s holds another text", c.Table, c.Column)
		}
	}
	return b.WriteTB(t)
}

// TestNoOutputShowsASecret plants secrets in traces, logs, metrics and command lines, and looks for them in whatever any command prints or
// writes.
func TestNoOutputShowsASecret(t *testing.T) {
	t.Parallel()
	p := &planted{where: map[string]string{}}
	base, head := p.trace(t), p.trace(t, tracetest.Schema("3.25.0"))
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	serverLog := string(read(t, "../../testdata/evidence/vllm.log"))
	log := write("server.log", serverLog+"\nINFO 01-01 00:00:00 [logger.py:39] Received request cmpl-1: prompt: '"+p.plain("a prompt in a log")+"', params: {\"api_key\": \""+p.plain("a key in a log")+"\"}\n"+
		"Traceback: "+p.plain("a traceback")+"\nAuthorization: Bearer "+p.plain("a header in a log")+"\n")
	prom := write("m.prom", "# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\",user=\""+p.plain("a label")+"\"} 3\n")
	ncu := write("raw.csv", `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","","","","","","","","us","%"
"0","7","`+p.plain("a process in ncu")+`","`+p.plain("a host in ncu")+`","decode `+p.token("a kernel in ncu")+`","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","12.50","41.00"
`)
	server := httptest.NewServer(fakeserver.New(fakeserver.Script{Tokens: 2}))
	defer server.Close()
	out := func(name string) string { return filepath.Join(dir, name) }
	reported := out("reported")
	for _, args := range [][]string{
		{"report", base, "--out", reported, "--verbose", "--server-log", log, "--prometheus", prom, "--ncu", ncu},
		{"report", head, "--out", out("head"), "--top", "1000"}, {base}, {base, "--format", "json"}, {base, "--format", "md"}, {base, "--print-schema"},
		{"report", "--server-log", log, "--prometheus", prom, "--ncu", ncu, "--out", out("evidence")}, {base, "--window", "nvtx:step"}, {base, "--unit", "nvtx:nothing"},
		{"diff", base, head, "--out", out("diff")}, {"diff", base, head, "--format", "json"}, {"diff", base, head, "--format", "md"}, {"diff", base, head, "--format", "junit"},
		{"diff", base, head, "--format", "csv"}, {"diff", filepath.Join(reported, "report.json"), out("head")},
		{"gate", "--base", base, "--head", head, "--out", out("gate")}, {"gate", "comment", filepath.Join(out("diff"), "comparison.json"), "--out", out("comment")}, {"calibrate", base, head, "--out", out("noise.json")},
		{"scrub", base, out("scrubbed.sqlite")}, {"scrub", "--names", "hash", base, out("hidden.sqlite")}, {"scrub", "--names", "hash:^step", head, out("partly.sqlite")},
		{"report", base, "--top", "100", "--ncu-targets", out("targets.yaml")}, {"doc", "metrics"}, {"policy", "init", base, head, "--noise", out("floors.json")}, {"load", "--url", server.URL, "--num-requests", "2", "--warmup", "0", "--out", out("load.json")},
		{"capture", "--dry-run", "--", "vllm", "serve", "m", "--pass", p.plain("--pass"), `{"a":{"password":"` + p.plain("nested JSON") + `"}}`, p.token("an argument")},
		{"capture", "vllm", "--model", "m", "--dry-run", "--client", "send --tok " + p.plain("--client"), "--", "--api-key", p.plain("an argument of the server")},
	} {
		_, said := runHere(t, args...)
		p.check(t, "explain "+args[0]+" (on its output)", []byte(said))
	}
	c := explaintest.Process(t, dir, nil, "capture", "--out", out("captured"), "--", "sh", "-c", "exit 0 # --password "+p.plain("a script"), "--pwd="+p.plain("--pwd"), p.token("an argument"), base)
	said, err := c.CombinedOutput()
	if code := explaintest.Exit(t, err); code != exitOK {
		t.Errorf("capture: exit code %d: %s", code, said)
	}
	p.check(t, "explain capture", said)
	if len(p.where) < 100 {
		t.Errorf("only %d secrets are planted", len(p.where))
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		// what is planted, and the trace that capture keeps
		if err != nil || d.IsDir() || path == log || path == prom || path == ncu || strings.HasPrefix(name, filepath.Join("captured", "trace.")) {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		p.check(t, name, b)
		return err
	})
	if err != nil || files < 150 {
		t.Errorf("%d files: %v", files, err)
	}
	t.Logf("%d secrets, %d files", len(p.where), files)
	for _, name := range []string{"reported/report.html", "diff/junit.xml", "gate/comment.md", "scrubbed.sqlite", "noise.json", "load.json", "captured/cmd.txt", "captured/report.html"} {
		if info, err := os.Stat(out(name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
