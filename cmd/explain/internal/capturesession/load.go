package capturesession

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// sender sends the load: by the user's program, or by explain's own generator.
func (s *Server) sender(r *Session, run *capture.Run) capture.Sender {
	if len(r.Window.Client) > 0 {
		return run.ClientSender(r.Window.Client)
	}
	return func(ctx context.Context, l *capture.Load) error {
		opt := load.Options{
			URL: l.URL, Model: s.modelAsked(), APIKey: s.Key, Mode: s.LoadMode, Temperature: load.DefaultTemperature,
			Seed: s.Seed, Rate: s.Rate, Concurrency: s.Concurrency, Requests: s.Requests, Warmup: s.Warmups,
			Version: r.Analysis.Version,
		}
		if s.Rate > 0 {
			opt.Concurrency = 0
		}
		if l.Requests > 0 {
			opt.Requests, opt.Warmup = l.Requests, 0
		}
		if s.Dataset != "" {
			d, err := load.ReadDataset(s.Dataset)
			if err != nil {
				return err
			}
			opt.Dataset = d
		}
		var shut error
		opt.BeforeLoad = l.Open
		opt.AfterLoad = func() { shut = l.Shut() }
		res, err := load.Run(ctx, opt)
		if err == nil {
			err = shut
		}
		interrupted := errors.Is(err, capture.ErrInterrupted)
		if err != nil && !interrupted {
			return fmt.Errorf("the load failed: %w", err)
		}
		if l.Dir == "" || res == nil || res.Counts.Succeeded == 0 {
			return err
		}
		if !res.Complete {
			res.Stopped = "interrupted"
		}
		if c := res.Counts; c.Failed > 0 {
			run.Note(fmt.Sprintf("%d of %d requests of the load failed: evidence/load.json says how", c.Failed, c.Sent))
		}
		if werr := atomicfile.File(filepath.Join(l.Dir, "load.json"), atomicfile.Any, res.Write); werr != nil {
			return werr
		}
		return err
	}
}

// Argument is the value of a flag of the server; empty: it is not there.
func Argument(args []string, flag string) string {
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, flag+"="); ok {
			return value
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// modelAsked is the model's name in requests: empty if the server may call it otherwise, and is asked.
func (s *Server) modelAsked() string {
	for _, a := range s.Extra {
		if strings.HasPrefix(a, "--served-model-name") {
			return ""
		}
	}
	return s.Model
}
