package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

func newScrub(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "scrub IN.sqlite OUT.sqlite",
		Short: "Write a copy of a capture that is safe to share",
		Long: `A capture holds the whole environment of the process, host and user names, command lines and
captured output. scrub writes a copy with the tables, columns and metadata that explain reads, by a
list of what may be kept, and nothing else. It analyses to the same numbers.

Names of kernels, API calls, NVTX ranges, programs, threads and GPUs stay, since reports are made of
them. Ranges can be named after anything: look at "explain OUT.sqlite" before you share it.

IN is never changed. OUT must not exist, and appears whole or not at all.`,
		Example: "  explain scrub trace.sqlite shareable.sqlite",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("name the capture and the copy: explain scrub IN.sqlite OUT.sqlite")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Lstat(args[1]); err == nil {
				return usagef("%s exists: name another file, or remove it", args[1])
			}
			done, err := analyze.Scrub(cmd.Context(), args[0], args[1], analyze.Options{Getenv: e.Getenv})
			switch {
			case errors.Is(err, os.ErrExist):
				return usagef("%s exists: name another file, or remove it", args[1])
			case err != nil:
				return err
			}
			_, err = fmt.Fprintf(e.Out, "Wrote %s: %d tables, %s rows; names of kernels and ranges are as they were\n",
				clean(args[1]), done.Tables, unit.Int(done.Rows))
			return err
		},
	}
}
