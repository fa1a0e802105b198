package exampletest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// packaged makes a folder of a release, with a program for this system and what stands for it for others, and packs it.
func packaged(t *testing.T, program []byte) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	dir := t.TempDir()
	var sums strings.Builder
	for _, name := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64.exe", "windows_arm64.exe"} {
		content := program
		if !strings.HasPrefix(name, runtime.GOOS+"_"+runtime.GOARCH) {
			content = []byte("stands for " + name)
		}
		explaintest.Put(t, filepath.Join(dir, "explain_v1.2.3_"+name), content, 0o755)
		fmt.Fprintf(&sums, "%x  explain_v1.2.3_%s\n", sha256.Sum256(content), name)
	}
	explaintest.Put(t, filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
	explaintest.Put(t, filepath.Join(dir, "LICENSE"), []byte("MIT"), 0o644)
	explaintest.Put(t, filepath.Join(dir, "THIRD_PARTY.txt"), []byte("others"), 0o644)
	if out, err := exec.Command("python3", explaintest.Root(".ci", "package"), "v1.2.3", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// TestPackages: each file is in SHA256SUMS, the archives hold the program, the formula names them by their checksums, the image
// is whole, and packing again gives the same bytes.
func TestPackages(t *testing.T) {
	dir := packaged(t, []byte("stands for the program"))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 24 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	sums := string(explaintest.Read(t, filepath.Join(dir, "SHA256SUMS")))
	formula := string(explaintest.Read(t, filepath.Join(dir, "explain.rb")))
	before := map[string]string{}
	for _, f := range files {
		b := explaintest.Read(t, filepath.Join(dir, f.Name()))
		sum := fmt.Sprintf("%x", sha256.Sum256(b))
		before[f.Name()] = sum
		switch name := f.Name(); {
		case name == "SHA256SUMS" || name == "LICENSE" || name == "THIRD_PARTY.txt":
			continue
		case !strings.Contains(sums, sum+"  "+name+"\n"):
			t.Errorf("%s is not in SHA256SUMS", name)
		case strings.HasSuffix(name, ".tar.gz") && !strings.Contains(formula, name+"\"\n      sha256 \""+sum+"\""):
			t.Errorf("%s is not in the formula\n%s", name, formula)
		case strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".whl"):
			z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil || len(z.File) < 3 {
				t.Fatalf("%s: %v", name, err)
			}
			if program := z.File[0]; program.Mode().Perm() != 0o755 || !strings.HasPrefix(filepath.Base(program.Name), "explain") {
				t.Errorf("%s holds %s, %s", name, program.Name, program.Mode())
			}
		case strings.HasSuffix(name, "_image.tar"):
			image(t, b)
		}
	}
	if out, err := exec.Command("python3", explaintest.Root(".ci", "package"), "v1.2.3", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, sum := range before {
		if again := fmt.Sprintf("%x", sha256.Sum256(explaintest.Read(t, filepath.Join(dir, name)))); again != sum {
			t.Errorf("%s differs when it is packed again", name)
		}
	}
}

// image follows the digests of an OCI layout from its index to the layers of two architectures.
func image(t *testing.T, layout []byte) {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(layout)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	type descriptor struct {
		Digest string `json:"digest"`
	}
	var node struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	follow := func(d descriptor) []byte {
		b := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if fmt.Sprintf("sha256:%x", sha256.Sum256(b)) != d.Digest {
			t.Fatalf("the image has no blob %s", d.Digest)
		}
		return b
	}
	decode := func(b []byte) {
		node.Manifests, node.Layers, node.Config = nil, nil, descriptor{}
		if err := json.Unmarshal(b, &node); err != nil {
			t.Fatal(err)
		}
	}
	decode(files["index.json"])
	decode(follow(node.Manifests[0]))
	if len(node.Manifests) != 2 {
		t.Fatalf("%d architectures", len(node.Manifests))
	}
	for _, m := range node.Manifests {
		decode(follow(m))
		var config struct{ Config struct{ Entrypoint []string } }
		if err := json.Unmarshal(follow(node.Config), &config); err != nil || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/usr/local/bin/explain" {
			t.Errorf("%+v, %v", config, err)
		}
		if len(node.Layers) != 1 || len(follow(node.Layers[0])) < 100 {
			t.Errorf("%d layers", len(node.Layers))
		}
	}
}

// TestInstall: install.sh and pip put a program on a machine without Go that makes the README's comparison. A file that is
// not what SHA256SUMS says is not installed. Without -long what is packed starts the program where it was built, and pip,
// which needs an environment of its own, is left out.
func TestInstall(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for Linux and macOS")
	}
	program := []byte("#!/bin/sh\nexec '" + explaintest.Program(t) + "' \"$@\"\n")
	if longtest.On() {
		program = explaintest.Read(t, explaintest.Program(t))
	}
	dir, bin := packaged(t, program), filepath.Join(t.TempDir(), "bin")
	install := func(version string) (string, error) {
		cmd := exec.Command("sh", filepath.Join(dir, "install.sh"))
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "EXPLAIN_FROM=" + dir, "EXPLAIN_BIN=" + bin, "EXPLAIN_VERSION=" + version}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := install("v9.9.9"); err == nil || !strings.Contains(out, "has no archive of v9.9.9") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := install(""); err != nil || !strings.Contains(out, "writes explain.report/1") || !strings.Contains(out, "is not on your PATH") {
		t.Fatalf("%v: %s", err, out)
	}
	compares := func(program string) {
		t.Helper()
		cmd := exec.Command(program, "diff", "demo/base.sqlite", "demo/head.sqlite")
		cmd.Dir = t.TempDir()
		demo := exec.Command(program, "demo")
		demo.Dir = cmd.Dir
		if out, err := demo.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := cmd.CombinedOutput()
		if explaintest.Exit(t, err) != 1 || !bytes.Contains(out, []byte("+150.3 µs kernel FlashAttnFwdSm90 → flash_fwd_splitkv_kernel")) {
			t.Errorf("%v: %s", err, out)
		}
	}
	compares(filepath.Join(bin, "explain"))
	venv := filepath.Join(t.TempDir(), "venv")
	if !longtest.On() {
		t.Log("pip is for -long")
	} else if out, err := exec.Command("python3", "-m", "venv", venv).CombinedOutput(); err != nil {
		t.Logf("no venv, so no pip: %s", out)
	} else {
		pip := exec.Command(filepath.Join(venv, "bin", "pip"), "install", "--no-index", "--find-links", dir, "nsys-llm-explain")
		if out, err := pip.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		compares(filepath.Join(venv, "bin", "explain"))
	}
	archive := filepath.Join(dir, "explain_v1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	b := explaintest.Read(t, archive)
	explaintest.Put(t, archive, append(b, 0), 0o644)
	if out, err := install(""); err == nil || !strings.Contains(out, "is not what SHA256SUMS says: nothing was installed") {
		t.Errorf("%v: %s", err, out)
	}
}
