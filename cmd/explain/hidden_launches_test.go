package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestHiddenGraphLaunchesNeverPass: of captures in which the kernels of some launches of CUDA graphs are missing, from one in 25
// to all of them, none passes against the whole one, on either side: 100 with -long.
func TestHiddenGraphLaunchesNeverPass(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(38, 1))
	draws := 4
	if longtest.On() {
		draws = 100
	}
	const launches = `SELECT DISTINCT r.correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE 'cudaGraphLaunch%'`
	whole := "../../testdata/serving.sqlite"
	for i := range draws {
		dir := t.TempDir()
		path := filepath.Join(dir, "hidden.sqlite")
		put(t, path, read(t, whole), 0o644)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := db.Query(launches)
		if err != nil {
			t.Fatal(err)
		}
		var all, hidden []string
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				t.Fatal(err)
			}
			all = append(all, id)
		}
		if err := rows.Err(); err != nil || len(all) < 50 {
			t.Fatalf("%d launches of graphs: %v", len(all), err)
		}
		share := 0.04 + 0.96*float64(i)/float64(draws-1)
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if i%2 == 0 { // all of one time
			hidden = all[:int(share*float64(len(all)))]
		} else {
			for _, id := range all {
				if rng.Float64() < share || len(hidden) < 5 {
					hidden = append(hidden, id)
				}
			}
		}
		for _, table := range []string{"KERNEL", "MEMCPY", "MEMSET"} {
			if _, err := db.Exec(fmt.Sprintf("DELETE FROM CUPTI_ACTIVITY_KIND_%s WHERE correlationId IN (%s)", table, strings.Join(hidden, ","))); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for _, sides := range [][]string{{whole, path}, {path, whole}} {
			var out bytes.Buffer
			code := run(context.Background(), append([]string{"diff", "--format", "json"}, sides...), &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }})
			if code == exitOK || code == exitInput || code == exitUsage {
				t.Errorf("%d of %d launches hidden, %v: exit %d: %s", len(hidden), len(all), sides, code, &out)
			} else if !strings.Contains(out.String(), "no GPU time under them") && !strings.Contains(out.String(), "no_unit") {
				t.Errorf("%d of %d launches hidden: exit %d, and nothing says why", len(hidden), len(all), code)
			}
		}
	}
}
