package diff_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff"
)

func TestYYStat(t *testing.T) {
	for _, s := range sources(t) {
		if s.name != "nsysai_mfu_2gpu_before" && s.name != "synthetic server" {
			continue
		}
		rng := rand.New(rand.NewPCG(5, 5))
		fam, share := s.family(0.05, 0.5)
		mem := s.members(fam)
		w := worlds()[1].world
		fmt.Println(s.name, fam, share, len(s.units), s.main)
		for i := range 14 {
			c := compare(t, s.side(rng, 3, w, change{}), s.side(rng, 3, w, change{fam, 1.08}), diff.Options{})
			for _, k := range c.Kernels {
				if k.BaseName != nil && mem[*k.BaseName] && k.Test != nil {
					fmt.Printf("%d %v %v effect %.4f SE %.4f df %.2f s %.5f mod %.5f p %.5f q %.5f  kernels %d share %.3f\n", i, c.Verdict, k.Class, k.Test.Effect, k.Test.SE, k.Test.DF, k.Test.S2, k.Test.Moderated, *k.P, *k.PAdjusted, len(c.Kernels), *k.Share)
				}
			}
		}
	}
}
