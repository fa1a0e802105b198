package history_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// TestWritersOfOneSecond: 32 writers add a commit each, every one with the time at which it began; none is lost, whoever
// gets the lock first.
func TestWritersOfOneSecond(t *testing.T) {
	r := history.Keep(historytest.Report(t, historytest.Capture{Seed: 1, Steps: 3}))
	onEach(t, func(t *testing.T, place string) {
		open(t, place)
		writers := longtest.N(12, 32)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				mine := *r
				content := fmt.Sprintf("%064x", i)
				mine.Capture.Content = &content
				s, err := history.Open(context.Background(), place, history.Read)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				p := history.Place{Branch: "main", Commit: historytest.Commit(i)}
				if _, err := s.Add(context.Background(), p, []*report.Report{&mine}, nil, now.Add(time.Duration(i%5)*time.Second)); err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		runs, err := open(t, place).Runs(context.Background(), history.Filter{})
		if err != nil || len(runs) != writers {
			t.Errorf("%d runs, %v", len(runs), err)
		}
	})
}

// TestServerThatNeverAnswers: it accepts and says nothing; connect_timeout ends the wait, and a closed port says what to do.
func TestServerThatNeverAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	place := (&url.URL{Scheme: "postgres", User: url.UserPassword("me", "secret"), Host: l.Addr().String(), Path: "/x",
		RawQuery: "sslmode=disable&connect_timeout=1"}).String()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, want := range []string{"does not answer within 1s", "start the database, or check host and port of --store"} {
		_, err = history.Open(ctx, place, history.Read)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, want)
		}
		l.Close()
	}
	if _, err := history.Open(ctx, "postgres://127.0.0.1/x?connect_timeout=soon", history.Read); err == nil || !strings.Contains(err.Error(), "connect_timeout=soon") {
		t.Errorf("%v", err)
	}
}

// TestReaderWaitsForAWriter: who may only read a store waits as others do until it is written.
func TestReaderWaitsForAWriter(t *testing.T) {
	place := filepath.Join(t.TempDir(), "history.db")
	open(t, place)
	writer, err := sql.Open("sqlite", place)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	writer.SetMaxOpenConns(1)
	if _, err := writer.Exec("BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(place, 0o444); err != nil {
		t.Fatal(err)
	}
	if f, err := os.OpenFile(place, os.O_RDWR, 0); err == nil {
		f.Close()
		t.Skip("this user may write everything")
	}
	released := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		_, err := writer.Exec("ROLLBACK")
		released <- err
	})
	s, err := history.Open(t.Context(), place, history.Read)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := <-released; err != nil {
		t.Error(err)
	}
}
