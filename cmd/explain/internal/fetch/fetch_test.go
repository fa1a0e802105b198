package fetch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

func TestFile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sig") != "s3cret":
			http.Error(w, "no", http.StatusForbidden)
		case r.URL.Path == "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("some"))
		default:
			_, _ = w.Write([]byte("bytes of " + r.URL.Path))
		}
	}))
	defer server.Close()
	for _, c := range []struct{ in, want, fails string }{
		{server.URL + "/a/rank0.sqlite?sig=s3cret", "bytes of /a/rank0.sqlite", ""},
		{"-", "from a pipe", ""},
		{server.URL + "/a?sig=wrongs3cret", "", "403"},
		{server.URL + "/cut?sig=s3cret", "", "cannot copy"},
		{"http://127.0.0.1:1/x?sig=s3cret", "", "cannot fetch"},
	} {
		name, remove, err := File(context.Background(), c.in, strings.NewReader("from a pipe"))
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", c.in, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil || string(b) != c.want {
			t.Errorf("%s: %q, %v", c.in, b, err)
		}
		remove()
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if Name("https://h/b/rank%201.sqlite?x=1") != "rank 1.sqlite" || Name("-") != "stdin" || Name("a/b.sqlite") != "b.sqlite" {
		t.Error("names")
	}
	if Shown("https://h/b?token=1") != "https://h/b" {
		t.Error(Shown("https://h/b?token=1"))
	}
}
