//go:build linux

package capturesession_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestInterruptKeepsWhatTheLoadMeasured: Ctrl-C while the server is under load leaves the folder with the trace and with what the load
// measured until then, marked as interrupted.
func TestInterruptKeepsWhatTheLoadMeasured(t *testing.T) {
	t.Parallel()
	port, err := capture.FreePort(0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := explaintest.Process(t, dir, []string{"STANDIN=ttft=5ms,tokens=4"}, "capture", "vllm", "--model", "m", "--port", fmt.Sprint(port),
		"--num-requests", "100000", "--concurrency", "4", "--warmup-requests", "0", "--no-report", "--out", "out")
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The server counts an answer before the load has read its end: of more answers than requests in flight, one was.
	answered := regexp.MustCompile(`(?m)^vllm:request_success_total.* ([5-9]|\d\d+)\.0$`)
	for range 600 {
		if answered.MatchString(bodyOf(fmt.Sprintf("http://127.0.0.1:%d/metrics", port))) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := explaintest.Exit(t, c.Wait()); code != cmdenv.Input || !strings.Contains(errs.String(), "explain: interrupted: out holds what was recorded up to then") {
		t.Errorf("exit code %d; said:\n%s", code, errs.String())
	}
	checkLeft(t, c, dir, leavesWhole)
	text, err := os.ReadFile(filepath.Join(dir, "out", "evidence", "load.json"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := loadfile.Read(bytes.NewReader(text))
	if err != nil || res.Stopped != "interrupted" || res.Complete || res.Counts.Succeeded == 0 {
		t.Errorf("%v: %+v", err, res)
	}
}

// bodyOf is what a server answers; empty where it does not.
func bodyOf(url string) string {
	res, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return ""
	}
	return string(b)
}
