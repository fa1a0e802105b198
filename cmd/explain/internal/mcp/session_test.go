package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEndsWhileNobodyAsks: a signal ends the server, though its input stays open and silent.
func TestEndsWhileNobodyAsks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, agent := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- (&Server{}).Serve(ctx, in, new(bytes.Buffer)) }()
	if _, err := agent.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // it waits for the next line
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits for a question")
	}
}

// TestAFolderThatChangedIsReadAgain: writing over a capture does not change its folder.
func TestAFolderThatChangedIsReadAgain(t *testing.T) {
	dir, src := t.TempDir(), &source{}
	path := filepath.Join(dir, "run", "trace.sqlite")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	s := Server{Source: src, Root: dir}
	for i, text := range []string{"a capture", "a capture", "another one"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.load(t.Context(), "run"); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 2}[i]; src.reads != want {
			t.Errorf("time %d: read %d times, want %d", i, src.reads, want)
		}
	}
}

// Opening a pipe to which nobody writes would keep every later question waiting.
func TestAPipeIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mkfifo", filepath.Join(dir, "pipe")).Run(); err != nil {
		t.Skip(err)
	}
	s := Server{Root: dir}
	if _, err := s.comparison(t.Context(), arguments{File: "pipe"}); err == nil ||
		!strings.Contains(err.Error(), "pipe is neither a file nor a folder") {
		t.Error(err)
	}
}

// TestTheFolderMayBeALink: what is listed is what can be read.
func TestTheFolderMayBeALink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.sqlite"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Server{Root: link}
	if text, err := s.files(t.Context(), arguments{}); err != nil || !strings.Contains(text, `"captures":["a.sqlite"]`) {
		t.Errorf("%s, %v", text, err)
	}
}
