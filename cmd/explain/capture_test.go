package main

import (
	"os"
	"path/filepath"
	"testing"
)

// standinPrograms is a folder with fakes for nsys, ncu, vllm and QdstrmImporter, to be put on PATH. They are this test binary
// (package capturetest, package fakeserver).
func standinPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, program := range map[string]string{"nsys": "standin-nsys", "ncu": "standin-ncu", "vllm": "standin", "QdstrmImporter": "standin-import"} {
		script := "#!/bin/sh\nexec " + program + " \"$@\"\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
