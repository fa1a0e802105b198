package capturesession

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// TestLoadIsWholeWhereTheRecordingIsNot: who interrupts while the recording ends, after the last answer, has a load that is whole.
func TestLoadIsWholeWhereTheRecordingIsNot(t *testing.T) {
	ts := httptest.NewServer(fakeserver.New(fakeserver.Script{Tokens: 2}))
	defer ts.Close()
	dir := t.TempDir()
	s := &Server{Load: load.Options{Requests: 3, Concurrency: 1}}
	err := s.sender(nil, "test")(t.Context(), &capture.Load{
		URL: ts.URL, Dir: dir, Open: func(context.Context) error { return nil }, Shut: func() error { return capture.ErrInterrupted },
	})
	if !errors.Is(err, capture.ErrInterrupted) {
		t.Errorf("error %v", err)
	}
	f, err := os.Open(filepath.Join(dir, "load.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if res, err := loadfile.Read(f); err != nil || !res.Complete || res.Counts.Succeeded != 3 {
		t.Errorf("%v: %+v", err, res)
	}
}

// TestLoadOfAServerThatDied: what was measured until the server was gone stays beside the recording, and says so.
func TestLoadOfAServerThatDied(t *testing.T) {
	ts := httptest.NewServer(nil)
	ts.Config.Handler = fakeserver.New(fakeserver.Script{Tokens: 2, Fault: fakeserver.Die, After: 4, OnDie: func() { go ts.Close() }})
	dir := t.TempDir()
	run, err := capture.NewRun(t.Context(), t.Context(), t.TempDir(), os.Getenv, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	s := &Server{Load: load.Options{Requests: 1000, Concurrency: 1}}
	err = s.sender(run, "test")(t.Context(), &capture.Load{
		URL: ts.URL, Dir: dir, Open: func(context.Context) error { return nil }, Shut: func() error { return nil },
	})
	if !errors.Is(err, load.ErrServerGone) {
		t.Errorf("error %v", err)
	}
	f, err := os.Open(filepath.Join(dir, "load.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if res, err := loadfile.Read(f); err != nil || res.Stopped != "server_gone" || res.Counts.Succeeded != 3 {
		t.Errorf("%v: %+v", err, res)
	}
}
