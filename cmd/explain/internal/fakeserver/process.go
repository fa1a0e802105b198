package fakeserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Main is the fake server as a process, in the place of a real one: `standin --port 0 --port-file FILE`, or `vllm serve
// MODEL --port 8000`. It takes --host, --port, --model and --port-file, and passes over every other argument. The
// script comes from the environment variable STANDIN, as "ttft=5ms,gap=1ms,tokens=8"; see parseScript. It ends at
// SIGTERM or SIGINT.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	host, port, portFile := "127.0.0.1", "0", ""
	p, err := parseScript(getenv("STANDIN"))
	if err != nil {
		fmt.Fprintf(stderr, "STANDIN: %v\n", err)
		return 2
	}
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		to, ok := map[string]*string{"--host": &host, "--port": &port, "--model": &p.script.Model,
			"--port-file": &portFile}[name]
		switch {
		case !ok:
		case inline:
			*to = value
		case i+1 < len(args):
			i++
			*to = args[i]
		}
	}
	if p.orphan != "" { // a worker that outlives the server
		worker := exec.Command("sleep", p.orphan)
		if err := worker.Start(); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		time.Sleep(time.Second)
	}
	if p.startFail > 0 {
		fmt.Fprintln(stderr, "(EngineCore pid=1) ERROR 01-01 00:00:00 [core.py:700] EngineCore failed to start.")
		fmt.Fprintln(stderr, "ValueError: the script says so")
		return p.startFail
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		fmt.Fprintln(stderr, "ERROR: [Errno 98] error while attempting to bind on address: address already in use")
		return 1
	}
	fmt.Fprintln(stderr, "(APIServer pid=1) INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.15.0")
	if portFile != "" {
		_, bound, err := net.SplitHostPort(l.Addr().String())
		if err == nil {
			err = writeWhole(portFile, bound+"\n")
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
	}
	return serve(l, p, stdout, stderr)
}

func serve(l net.Listener, p *process, stdout, stderr io.Writer) int {
	died := make(chan struct{})
	p.script.OnDie = sync.OnceFunc(func() { close(died) })
	srv := &http.Server{Handler: New(p.script), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	fmt.Fprintln(stderr, "(APIServer pid=1) INFO:     Application startup complete.")
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	for {
		select {
		case <-died:
			fmt.Fprintln(stderr,
				"(EngineCore pid=1) ERROR 01-01 00:00:00 [core.py:700] EngineCore encountered a fatal error.")
			return 1
		case <-signals:
			if p.ignoreStop {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = srv.Shutdown(ctx)
			fmt.Fprintln(stdout, "stopped")
			return 0
		}
	}
}

// writeWhole writes a file that appears with its content.
func writeWhole(path, text string) error {
	if err := os.WriteFile(path+".part", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// process is a script, and what only a process does.
type process struct {
	script     Script
	startFail  int    // exit code instead of a start
	orphan     string // seconds that a child process sleeps which is left behind; empty: none
	ignoreStop bool   // SIGTERM is ignored
}

// parseScript reads key=value pairs, separated by commas: ttft, gap, tokens, per_event, model, healthy_after (a
// duration, or never), fault, every, after, die_after (completion requests before the process ends), start_fail (exit
// code), orphan (seconds), stop (ignore), key, and the flags no_health, no_models, no_metrics, no_usage,
// no_done.
func parseScript(text string) (*process, error) {
	p := &process{}
	s := &p.script
	places := map[string]any{
		"ttft": &s.TTFT, "gap": &s.Gap, "tokens": &s.Tokens, "per_event": &s.PerEvent, "model": &s.Model,
		"healthy_after": &s.HealthyAfter, "fault": &s.Fault, "every": &s.Every, "after": &s.After, "die_after": &s.After,
		"start_fail": &p.startFail, "orphan": &p.orphan, "stop": &p.ignoreStop, "key": &s.Key,
		"no_health": &s.NoHealth, "no_models": &s.NoModels, "no_metrics": &s.NoMetrics, "no_usage": &s.NoUsage,
		"no_done": &s.NoDone,
	}
	for _, pair := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		var err error
		switch to := places[key].(type) {
		case *time.Duration:
			if *to = -1; key != "healthy_after" || value != "never" {
				*to, err = time.ParseDuration(value)
			}
		case *int:
			*to, err = strconv.Atoi(value)
		case *string:
			*to = value
		case *bool:
			if *to = true; value != "" && (key != "stop" || value != "ignore") {
				err = errors.New("unknown value " + strconv.Quote(value))
			}
		default:
			if key != "" {
				err = errors.New("unknown key")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if key == "die_after" {
			s.Fault = Die
		}
	}
	return p, nil
}
