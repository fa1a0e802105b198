// Package atomicfile writes files and folders that appear whole or not at all: a reader never meets half of one.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Folder writes files, by their names below dir, whole or not at all: everything is written into a scratch folder
// beside it first, and moved into place when it is complete. A folder that exists keeps what explain did not write.
func Folder(ctx context.Context, dir string, files map[string]func(io.Writer) error) error {
	dir = filepath.Clean(dir)
	fail := func(err error) error { return fmt.Errorf("cannot write %s: %w", dir, err) }
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fail(err)
	}
	_, statErr := os.Stat(dir)
	exists := statErr == nil
	if exists {
		parent = dir // the same file system, whatever dir is a link to
	}
	scratch, err := os.MkdirTemp(parent, ".explain-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(scratch)
	if err := os.Chmod(scratch, 0o755); err != nil {
		return fail(err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Join(scratch, filepath.Dir(name)), 0o755); err != nil {
				return fail(err)
			}
			if err := create(filepath.Join(scratch, name), files[name]); err != nil {
				return fail(err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if !exists {
		err := os.Rename(scratch, dir)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrExist):
			return fail(err)
		}
	}
	for name := range files { // what stands in the way is found before anything is replaced
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fail(err)
		}
		if info, err := os.Lstat(to); err == nil && info.IsDir() {
			return fail(fmt.Errorf("%s is a folder, not a file that a report can replace", name))
		}
	}
	for name := range files {
		if err := os.Rename(filepath.Join(scratch, name), filepath.Join(dir, name)); err != nil {
			return fail(err)
		}
	}
	return nil
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// File writes a file whole or not at all.
func File(path string, write func(io.Writer) error) error {
	fail := func(err error) error { return fmt.Errorf("cannot write %s: %w", path, err) }
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fail(err)
	}
	scratch, err := os.MkdirTemp(filepath.Dir(path), ".explain-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(scratch)
	name := filepath.Join(scratch, filepath.Base(path))
	if err := create(name, write); err != nil {
		return fail(err)
	}
	if err := os.Rename(name, path); err != nil {
		return fail(err)
	}
	return nil
}
