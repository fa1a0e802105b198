package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// loadFrom runs explain load against an address.
func loadFrom(url string, args ...string) (code int, errs string) {
	var o, e bytes.Buffer
	w := &env{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }}
	code = run(context.Background(), append([]string{"load", "--url", url, "--num-requests", "4"}, args...), w)
	return code, e.String()
}

// A server with a certificate of its own is refused at once, with the remedies named; both remedies work.
func TestLoadTrustsWhomItIsTold(t *testing.T) {
	t.Parallel()
	ts := httptest.NewTLSServer(fakeserver.New(fakeserver.Script{Tokens: 2}))
	defer ts.Close()
	ts.Config.ErrorLog = nil
	dir := t.TempDir()
	ca, junk := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "junk.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw})
	for name, content := range map[string][]byte{ca: block, junk: []byte("no certificate")} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"unknown":   {nil, exitInput, "its certificate was refused; name the authority's certificate with --cacert, or do not check it with --insecure"},
		"--cacert":  {[]string{"--cacert", ca}, exitOK, ""},
		"insecure":  {[]string{"--insecure"}, exitOK, ""},
		"both":      {[]string{"--insecure", "--cacert", ca}, exitUsage, "exclude each other"},
		"not PEM":   {[]string{"--cacert", junk}, exitUsage, "holds no certificate in PEM form"},
		"not there": {[]string{"--cacert", ca + "x"}, exitUsage, "--cacert: "},
	} {
		begun := time.Now()
		code, errs := loadFrom(ts.URL, c.args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
		if took := time.Since(begun); took > 20*time.Second { // --health-timeout is 10 min
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// When every request fails, in the warm-up or in the load, the file says so: it is evidence like any other, and a report
// can be made of it.
func TestLoadWritesFailures(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		sent int64
	}{"warm-up": {[]string{"--concurrency", "1"}, 1}, "load": {[]string{"--warmup", "0"}, 4}} {
		ts := httptest.NewServer(fakeserver.New(fakeserver.Script{Fault: "http_500"}))
		path := filepath.Join(t.TempDir(), "load.json")
		code, errs := loadFrom(ts.URL, append(c.args, "--out", path)...)
		ts.Close()
		if code != exitInput || !strings.Contains(errs, "http_500") {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := loadfile.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r.Counts.Sent != c.sent || r.Counts.Failed != c.sent || r.Failures[0].Kind != "http_500" {
			t.Errorf("%s: %+v, %v", name, r.Counts, r.Failures)
		}
		var out, errOut bytes.Buffer
		w := &env{In: strings.NewReader(""), Out: &out, Err: &errOut, Getenv: func(string) string { return "" }}
		code = run(context.Background(), []string{"report", "--evidence", path, "--format", "md"}, w)
		if code != exitOK || !strings.Contains(out.String(), "http_500") {
			t.Errorf("%s: exit %d: %s %s", name, code, out.String(), errOut.String())
		}
	}
}
