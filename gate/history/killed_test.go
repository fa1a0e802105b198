package history_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/gate/history"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// TestWritersKilledAtRandom: writers are processes that add a commit each, all at once, and a third of them are killed at
// a random time. Every run of a writer that exited 0 is in the store, whole, and no other but of writers that were killed
// after they had committed. With -long 32 writers in 100 rounds.
func TestWritersKilledAtRandom(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	b, err := json.Marshal(history.Keep(historytest.Report(t, historytest.Capture{Seed: 1, Steps: 3})))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, place string) {
		if strings.Contains(place, "://") {
			place += "&statement_timeout=600000" // they wait for each other, on a machine with other work
		}
		open(t, place)
		rng := rand.New(rand.NewPCG(38, 4))
		added, killed := map[string]bool{}, map[string]bool{}
		for round := range longtest.N(2, 100) {
			writers := longtest.N(6, 32)
			list := make([]*exec.Cmd, writers)
			said := make([]bytes.Buffer, writers)
			for i := range list {
				c := exec.Command(os.Args[0])
				n := round*writers + i
				c.Env = append(os.Environ(), "HISTORY_TEST_ADD="+
					strings.Join([]string{place, file, historytest.Commit(n), strconv.Itoa(n)}, "\n"))
				c.Stderr = &said[i]
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				list[i] = c
				if rng.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rng.Int64N(int64(longtest.N(300, 1500))))*time.Millisecond, func() { _ = c.Process.Kill() })
				}
			}
			for i, c := range list {
				commit := historytest.Commit(round*writers + i)
				switch err := c.Wait(); {
				case err == nil:
					added[commit] = true
				case c.ProcessState.ExitCode() == -1:
					killed[commit] = true
				default:
					t.Errorf("a writer failed: %v: %s", err, said[i].Bytes())
				}
			}
		}
		s := open(t, place)
		runs, err := s.Runs(context.Background(), history.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		kept, late := map[string]bool{}, 0
		for i := range runs {
			r := &runs[i]
			kept[r.Commit] = true
			if !added[r.Commit] {
				late++
				if !killed[r.Commit] {
					t.Errorf("a run of %s, which nobody added", r.Commit)
				}
			}
			if _, err := s.Report(context.Background(), r); err != nil {
				t.Errorf("run %s: %v", r.Commit, err)
			}
		}
		for commit := range added {
			if !kept[commit] {
				t.Errorf("the run of %s is lost", commit)
			}
		}
		t.Logf("%d writers exited 0, %d were killed, %d of them after they had committed; %d runs", len(added), len(killed), late, len(runs))
	})
}

// addOne is another process: it adds the report of a file as the run of a commit, some seconds from now.
func addOne(told string) {
	fields := strings.Split(told, "\n")
	err := func() error {
		b, err := os.ReadFile(fields[1])
		if err != nil {
			return err
		}
		r, err := report.Read(bytes.NewReader(b))
		if err != nil {
			return err
		}
		r.Capture.Content = &fields[2] // each its own capture
		s, err := history.Open(context.Background(), fields[0], history.Create)
		if err != nil {
			return err
		}
		defer s.Close()
		seconds, err := strconv.Atoi(fields[3])
		if err != nil {
			return err
		}
		_, err = s.Add(context.Background(), history.Place{Branch: "main", Commit: fields[2]}, []*report.Report{r}, nil,
			now.Add(time.Duration(seconds)*time.Second))
		return err
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
