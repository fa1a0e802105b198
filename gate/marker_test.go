package gate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCleanKey(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "explain",
		"gate":                   "gate",
		"perf_h100.decode-8":     "perf_h100.decode-8",
		"perf/h100 decode":       "perf-h100-decode-7d45f168",
		"a--b":                   "a-b-",
		"-->":                    "explain-",
		strings.Repeat("x", 81):  strings.Repeat("x", 71) + "-",
		strings.Repeat("x", 80):  strings.Repeat("x", 80),
		"Perf (h100, batch 32) ": "Perf-h100-batch-32-",
	} {
		if got := CleanKey(in); got != want && (!strings.HasSuffix(want, "-") || !strings.HasPrefix(got, want) || len(got) != len(want)+8) {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestMarkerProperties: every marker reads back as it was signed, below any text, and a key is clean, stable and its own.
func TestMarkerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		key := CleanKey(a)
		if CleanKey(key) != key || len(key) > maxKey || strings.Contains(key, "--") || strings.HasPrefix(key, "-") || strings.HasSuffix(key, "-") {
			t.Fatalf("key %q of %q", key, a)
		}
		if a != b && a != "" && b != "" && a != "explain" && b != "explain" && key == CleanKey(b) {
			t.Fatalf("%q and %q are both %q", a, b, key)
		}
		want := marker{key: key, stamp: stamp{rapid.SampledFrom([]string{"", sha("a"), strings.Repeat("b", 64)}).Draw(t, "head"),
			rapid.Int64Range(0, 1e18-1).Draw(t, "run"), rapid.IntRange(0, 1e9-1).Draw(t, "attempt")}}
		body := want.sign(b)
		text, got, ok := readMarker(body)
		if !ok || got.String() != want.String() {
			t.Fatalf("%+v became %+v of %q", want, got, body)
		}
		if again := want.sign(text); again != want.sign(strings.ReplaceAll(b, "\r\n", "\n")) {
			t.Fatalf("text %q became %q", b, text)
		}
	})
}

// TestStampsAreOrdered: of two different runs one is newer.
func TestStampsAreOrdered(t *testing.T) {
	order := []stamp{{"", 1, 1}, {"", 1, 2}, {"", 2, 1}, {"", 10, 1}}
	for i, a := range order {
		for j, b := range order {
			if a.newer(b) != (i > j) {
				t.Errorf("%+v newer than %+v: %t", a, b, a.newer(b))
			}
		}
	}
}

// FuzzMarker: whatever stands in a comment, what is read as a marker is one, and signing the text again keeps it.
func FuzzMarker(f *testing.F) {
	f.Add("text\n\n<!-- explain:v1:key=gate head=" + sha("a") + " run=1 attempt=1 -->")
	f.Add("<!-- explain:v1:key=gate head=- run=999999999999999999 attempt=1 -->\r\n")
	f.Add("<!-- explain:v1:key=a--b head=- run=1 attempt=1 -->")
	f.Add("<!-- explain:v1:key=gate head=- run=99999999999999999999 attempt=1 -->")
	f.Add("`<!-- explain:v1:key=gate head=- run=1 attempt=1 -->` quoted")
	f.Fuzz(func(t *testing.T, body string) {
		text, m, ok := readMarker(body)
		if !ok {
			return
		}
		if m.key != CleanKey(m.key) || m.stamp.RunID < 0 || m.stamp.Attempt < 0 {
			t.Errorf("%+v", m)
		}
		if again, m2, ok := readMarker(m.sign(text)); !ok || m2.String() != m.String() || again != strings.TrimRight(text, " \r\n") {
			t.Errorf("%q became %q, %+v became %+v", text, again, m, m2)
		}
	})
}
