package analyze

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	_ "modernc.org/sqlite" // checks files

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestDamageGivesNoOtherNumbers: of captures that were damaged so that SQLite's own check finds it, each is refused, or
// has the numbers of the sound one, or a warning that this one has not. 20 of them, or 500 with -long.
func TestDamageGivesNoOtherNumbers(t *testing.T) {
	const page = 4096
	rng := rand.New(rand.NewPCG(38, 5))
	path := filepath.Join(t.TempDir(), "damaged.sqlite")
	refused, same, warned := 0, 0, 0
	bases := []string{"base", "serving_graph", "twoprocs"}
	for left := longtest.N(20, 500); left > 0; {
		base := filepath.Join("..", "testdata", bases[left%len(bases)]+".sqlite")
		b, err := os.ReadFile(base)
		if err != nil {
			t.Fatal(err)
		}
		plain := bytes.Clone(b)
		at := func() int { return page * (1 + rng.IntN(len(b)/page-1)) }
		one, other, what := at(), at(), rng.IntN(6)
		switch what {
		case 0: // bytes anywhere
			for range 1 + rng.IntN(8) {
				b[page+rng.IntN(len(b)-page)] ^= byte(1 + rng.IntN(255))
			}
		case 1: // in the header of a page
			b[one+rng.IntN(12)] ^= byte(1 + rng.IntN(255))
		case 2: // in the list of cells
			b[one+8+rng.IntN(100)] ^= byte(1 + rng.IntN(255))
		case 3: // a stretch is zero
			n := rng.IntN(page)
			clear(b[one+n : one+page])
		case 4: // a page holds what another one does
			copy(b[one:one+page], plain[other:])
		case 5: // two change places
			copy(b[one:one+page], plain[other:])
			copy(b[other:other+page], plain[one:])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if sound(t, path) {
			continue
		}
		left--
		want, err := Run(context.Background(), base, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Run(context.Background(), path, Options{})
		switch {
		case err != nil:
			refused++
		case texts(t, got.Report.Metrics) == texts(t, want.Report.Metrics):
			same++
		case !reflect.DeepEqual(got.Report.Warnings, want.Report.Warnings):
			warned++
		default:
			t.Errorf("%s with damage of kind %d at pages %d and %d has other numbers, and no warning", base, what, one/page+1, other/page+1)
		}
	}
	t.Logf("%d refused, %d with the same numbers, %d with a warning", refused, same, warned)
	if refused == 0 {
		t.Error("none was refused")
	}
}

// sound reports whether SQLite's own check finds no fault in a file.
func sound(t *testing.T, path string) bool {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var said string
	return db.QueryRow("pragma integrity_check(1)").Scan(&said) == nil && said == "ok"
}

func texts(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
