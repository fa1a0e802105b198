package mergecmd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

func TestPlaceOfAPartial(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "ranks.txt")
	if err := os.WriteFile(manifest, []byte("# of job 7"+strings.Repeat(" and more", 10_000)+"\nrank0.sqlite\n\n  rank1.sqlite  \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readManifest(manifest)
	if err != nil || !slices.Equal(list, []string{"rank0.sqlite", "rank1.sqlite"}) {
		t.Errorf("%q, %v", list, err)
	}
	for _, x := range []struct {
		flags      partialFlags
		args       []string
		trace, out string
		wrong      string
	}{
		{partialFlags{out: "a.partial", index: -1}, []string{"a.sqlite"}, "a.sqlite", "a.partial", ""},
		{partialFlags{out: "parts", index: 1, of: manifest}, nil, "rank1.sqlite", filepath.Join("parts", "000001.partial"), ""},
		{partialFlags{index: -1}, []string{"a.sqlite"}, "", "", "--out is missing"},
		{partialFlags{out: "a", index: -1, of: manifest}, nil, "", "", "--index a line of it"},
		{partialFlags{out: "parts", index: 2}, nil, "", "", "name it with --of"},
		{partialFlags{out: "parts", index: 2, of: manifest}, nil, "", "", "names 2 traces, counted from 0"},
		{partialFlags{out: "parts", index: 0, of: manifest + ".gone"}, nil, "", "", "--of: "},
	} {
		trace, out, err := x.flags.place(x.args)
		if x.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), x.wrong) {
				t.Errorf("%+v: error %v, want %q", x.flags, err, x.wrong)
			}
			continue
		}
		if err != nil || trace != x.trace || out != x.out {
			t.Errorf("%+v: %s, %s, %v", x.flags, trace, out, err)
		}
	}
}

func TestOptionsOfARun(t *testing.T) {
	for want, f := range map[string]Run{
		"--top must be at least 1":       {},
		"is not a regular expression":    {Top: 30, Rank: "rank("},
		"has no group around the number": {Top: 30, Rank: "rank[0-9]+"},
		"is not REGEX=NAME":              {Top: 30, Roles: []string{"prefill="}},
		`--role "("`:                     {Top: 30, Roles: []string{"(=decode"}},
	} {
		if _, err := f.options(&cmdenv.Env{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
	f := Run{Top: 5, Rank: `rank(\d+)`, Roles: []string{"a=b=prefill"}} // the name is what follows the last =
	opt, err := f.options(&cmdenv.Env{Version: "1"})
	if err != nil || opt.Top != 5 || opt.Version != "1" || len(opt.Roles) != 1 || opt.Roles[0].Name != "prefill" ||
		opt.Roles[0].Of.String() != "a=b" || opt.Rank.FindStringSubmatch("run-rank12.sqlite")[1] != "12" {
		t.Errorf("%+v, %v", opt, err)
	}
}

func TestWhatIsAPartial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.partial")
	if readPartial(path, true) == nil {
		t.Error("a file that is not there is a partial")
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if readPartial(path, true) == nil {
		t.Error("{} is a partial")
	}
}

// A partial at an address is fetched; errors and the report name the address without what may be secret in it.
func TestPartialAtAnAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/runs/7.partial" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "a partial")
	}))
	defer server.Close()
	list, err := new(Run).sources(t.Context(), &cmdenv.Env{}, []string{server.URL + "/runs/7.partial?sig=s3cret"})
	if err != nil || len(list) != 1 || list[0].Name != server.URL+"/runs/7.partial" {
		t.Fatalf("%+v, %v", list, err)
	}
	for range 2 { // a source is opened more than once
		f, err := list[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != "a partial" {
			t.Errorf("%q, %v", b, err)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join(server.URL, "gone.partial"), 0o755); err != nil { // as a checkout may hold
		t.Log(err)
	}
	_, err = new(Run).sources(t.Context(), &cmdenv.Env{}, []string{server.URL + "/gone.partial"})
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Error(err)
	}
	_, err = new(Run).sources(t.Context(), &cmdenv.Env{}, []string{server.URL + "/gone.partial?sig=s3cret"})
	if err == nil || !strings.Contains(err.Error(), "/gone.partial") || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}
