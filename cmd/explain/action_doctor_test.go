//go:build unix

package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/gate/gatetest"
)

// TestDoctor: what would go wrong in the end costs seconds. An nsys without its importer exits with 0 and leaves a raw
// stream, as those of Debian do.
func TestDoctor(t *testing.T) {
	trace, err := filepath.Abs("../../testdata/base.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	const asked = `#!/bin/sh
case "$1" in
--version) echo "NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0"; exit ;;
profile) [ "$2" = --help ] && exit; for a; do [ "$last" = -o ] && to="$a"; last="$a"; done; `
	works := asked + `echo recorded > "$to.nsys-rep" ;;
export) while [ "$1" != --output ]; do [ "$2" = --help ] && exit; shift; done; cp ` + trace + ` "$2" ;;
esac
`
	for _, c := range []struct {
		why, nsys, inputs string
		denied            []string
		code              int
		want              []string
	}{
		{"all is there", works, `{"command": "doctor", "out": "reports"}`, nil, 0, []string{"ok    nsys: 2024.2.3", "ok    recording: ", "ok    disk: ", "ok    out: ", "ok    token: "}},
		{"no importer", asked + `echo "Generated: $to.qdstrm" ;;` + "\nesac\n", `{"command": "doctor"}`, nil, exitInput,
			[]string{"WRONG recording: nsys profile exits with 0 and leaves no .nsys-rep", ".qdstrm): install all of Nsight Systems", "::error title=explain::recording"}},
		{"an export that fails", strings.Replace(works, "cp "+trace+` "$2"`, `echo "no importer here"; exit 1`, 1), `{"command": "doctor"}`, nil, exitInput,
			[]string{"WRONG recording: the recording cannot be read: ", "no importer here"}},
		{"no nsys", "", `{"command": "doctor"}`, nil, exitInput, []string{"WRONG nsys: nsys is not installed here"}},
		{"a token that may not", works, `{"command": "doctor"}`, []string{"actions: read", "checks: read"}, exitInput,
			[]string{"WRONG token: cannot list the runs", "actions: read", "checks: read"}},
		{"a policy with a mistake", works, `{"command": "doctor", "policy": "p.yml"}`, nil, exitInput, []string{"WRONG policy: ", "p.yml"}},
		{"a policy that is not here", works, `{"command": "doctor", "policy": "q.yml"}`, nil, 0, []string{"?     policy: it is not in this checkout"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Chdir(t.TempDir())
			bin := t.TempDir()
			if c.nsys != "" {
				put(t, filepath.Join(bin, "nsys"), []byte(c.nsys), 0o755)
			}
			t.Setenv("PATH", bin+":/bin:/usr/bin")
			put(t, "p.yml", []byte("version: 1\nrulez: []\n"), 0o644)
			server := httptest.NewServer(gatetest.New(gatetest.Scenario{Denied: c.denied}))
			defer server.Close()
			vars := map[string]string{"INPUTS": c.inputs, "GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "41", "GITHUB_REPOSITORY": "octo/llm",
				"GITHUB_API_URL": server.URL, "GITHUB_TOKEN": "ghs_secret", "GITHUB_SHA": gatetest.HeadSHA, "GITHUB_EVENT_NAME": "push"}
			var out bytes.Buffer
			code := run(context.Background(), []string{"action"}, &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string { return vars[name] }})
			if code != c.code {
				t.Errorf("exit %d, want %d:\n%s", code, c.code, &out)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not said:\n%s", want, &out)
				}
			}
			if left, err := os.ReadDir("."); err != nil || len(left) != 1 {
				t.Errorf("it leaves %v, %v", left, err)
			}
		})
	}
}
