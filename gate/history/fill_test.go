package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
)

// FillForTest adds n nights of one report, whose numbers it scales; those of the newer half by step as well.
func (s *Store) FillForTest(ctx context.Context, r *report.Report, p Place, n int, step float64) error {
	rows, err := rowsOf(&p, []*report.Report{r}, WorkloadOf(r, ""))
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(7, 7))
	return s.change(ctx, func(c *changes) {
		for i := range n {
			x := rows[0]
			x.Commit, x.Capture = fmt.Sprintf("%040x", 0xc0ffee0000+i), fmt.Sprintf("%032x", i)
			x.Time = p.Time.Add(time.Duration(i-n) * 24 * time.Hour / 10)
			x.Key = hash(p.Branch, x.Commit)[:32]
			x.points = nil
			for _, q := range rows[0].points {
				if q.value *= 1 + 0.01*rng.NormFloat64(); 2*i >= n {
					q.value *= step
				}
				x.points = append(x.points, q)
			}
			c.run(ctx, &x, &Merged{})
		}
	})
}
