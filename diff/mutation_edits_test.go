package diff_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/mutant"
	"github.com/nsys-llm/explain/diff/comparison"
)

// harm is a way to make a capture slower, of a strength to be found.
type harm struct {
	name        string
	none, first float64
	edit        func(s *subject, on mutant.On, x float64) mutant.Edit
	whole       bool // concerns the whole capture: neither kind nor form
}

const loggingKernel = "void at::native::logging_probe_kernel<float>(T1 *)"

const oneRank = "NCCL on one rank"

func harms() []harm {
	kernel := func(n int) func(s *subject, on mutant.On, x float64) mutant.Edit {
		return func(s *subject, on mutant.On, x float64) mutant.Edit {
			names := biggest(s.base[0])
			return mutant.ScaleKernels(on, names[min(n, len(names)-1)], x)
		}
	}
	return []harm{
		{"kernel, largest", 1, 1.2, kernel(0), false},
		{"kernel, third", 1, 1.4, kernel(2), false},
		{"all kernels", 1, 1.1, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.ScaleKernels(on, "", x) }, false},
		{"launch calls", 1, 2, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Launches(on, x) }, false},
		{"host stall", 0, 50_000, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Stall(on, x) }, false},
		{"new sync", 0, 20_000, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Sync(on, x) }, false},
		{"copy, pageable", 0, 30_000, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Copy(on, true, x) }, false},
		{"copy, pinned", 0, 30_000, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Copy(on, false, x) }, false},
		{"extra kernels", 0, 5_000, func(_ *subject, on mutant.On, x float64) mutant.Edit { return mutant.Extra(on, 8, loggingKernel, x) }, false},
		{"renamed, slower", 1, 1.2, func(s *subject, _ mutant.On, x float64) mutant.Edit {
			name := biggest(s.base[0])[0]
			return mutant.Both(mutant.ScaleKernels(mutant.On{}, name, x), mutant.Rename(name, name+"_v2"))
		}, true},
		{"fused, slower", 1, 1.2, func(s *subject, on mutant.On, x float64) mutant.Edit {
			return mutant.Fuse(on, s.pair[0], s.pair[1], x)
		}, false},
		{"drift", 1, 1.2, func(_ *subject, _ mutant.On, x float64) mutant.Edit { return mutant.Drift(x) }, true},
		{oneRank, 1, 2, func(_ *subject, _ mutant.On, x float64) mutant.Edit { return mutant.Collectives(1, x) }, true},
	}
}

// harmlessEdit is an edit that does no harm.
type harmlessEdit struct {
	name  string
	exact bool // the same events: one capture is enough
	edit  func(s *subject, i int) mutant.Edit
}

func harmlessEdits() []harmlessEdit {
	return []harmlessEdit{
		{"noise 1–2 %", false, func(_ *subject, i int) mutant.Edit { return mutant.Noise(0.01+0.005*float64(i%3), uint64(1000+i)) }},
		{"logging kernel", false, func(_ *subject, i int) mutant.Edit {
			return mutant.Extra(mutant.On{Every: []int{2, 3, 4, 8, 10}[i%5]}, 1, loggingKernel, 2_000)
		}},
		{"re-export", true, func(_ *subject, i int) mutant.Edit { return mutant.Reexport(uint64(1 + i)) }},
		{"shuffled rows", true, func(_ *subject, i int) mutant.Edit { return mutant.Shuffle(uint64(1 + i)) }},
		{"longer recording", false, func(*subject, int) mutant.Edit { return mutant.Repeat(mutant.On{}) }},
		{"faster, two more kernels", false, func(s *subject, _ int) mutant.Edit {
			return mutant.Both(mutant.ScaleKernels(mutant.On{}, biggest(s.base[0])[0], 0.8), mutant.Extra(mutant.On{}, 2, loggingKernel, 1_000))
		}},
		{"renamed", false, func(s *subject, i int) mutant.Edit {
			names := biggest(s.base[0])
			name := names[i%min(len(names), 4)]
			return mutant.Rename(name, name+"_v2")
		}},
		{"another mix", false, func(s *subject, i int) mutant.Edit {
			kinds := s.capture.Kinds()
			on := mutant.On{Kind: kinds[i%len(kinds)].Name, Every: 2}
			if i%2 == 1 {
				return mutant.Drop(on)
			}
			return mutant.Repeat(on)
		}},
	}
}

// harmForm changes every unit of a kind, a third of them, or one in eight; at least four, since fewer are stragglers.
type harmForm struct {
	name  string
	every int
}

// harmForms say in which units of a kind the harm is done.
var harmForms = []harmForm{{"median", 1}, {"mean", 3}, {"tail", 8}}

func (f harmForm) on(kind mutant.Kind) mutant.On {
	return mutant.On{Kind: kind.Name, Every: min(f.every, max(2, kind.Units/4))}
}

// mutantCell is one mutant to make.
type mutantCell struct {
	harm     *harm
	form     harmForm
	size     float64
	captures int
	subject  *subject
	kind     mutant.Kind
	seed     uint64
}

// withRanks are subjects whose ranks call NCCL.
var withRanks = []string{"ranks", "nsysai_mfu_2gpu_before"}

// harmful draws the mutants: each edit in each form, of each size, with 1 and 3 captures a side, n times on a subject and
// a kind with a tenth of its time.
func harmful(subjects []*subject, n int) []mutantCell {
	rng := rand.New(rand.NewPCG(mutationSeed, 1))
	list := harms()
	var cells []mutantCell
	for h := range list {
		for f, form := range harmForms {
			if list[h].whole && f > 0 {
				continue
			}
			for _, size := range []float64{1.055, 1.07, 1.1, 1.2, 1.5} {
				for _, captures := range []int{1, 3} {
					for range n {
						s := subjects[rng.IntN(len(subjects))]
						if list[h].name == oneRank {
							s = subjects[slices.IndexFunc(subjects, func(s *subject) bool { return slices.Contains(withRanks, s.name) })]
						}
						kinds := slices.DeleteFunc(s.capture.Kinds(), func(k mutant.Kind) bool { return k.Share < 0.1 })
						cells = append(cells, mutantCell{&list[h], form, size, captures, s, kinds[rng.IntN(len(kinds))], rng.Uint64N(1e6)})
					}
				}
			}
		}
	}
	return cells
}

// run makes a mutant and its comparison. ok is false where the edit cannot be made so strong.
func (c *mutantCell) run(tb testing.TB) (truth mutant.Truth, got *comparison.Comparison, ok bool) {
	tb.Helper()
	on := c.form.on(c.kind)
	if c.harm.whole {
		on = mutant.On{}
	}
	s := c.subject
	edit, truth, err := s.capture.Sized(c.size, c.harm.none, c.harm.first, func(x float64) mutant.Edit { return c.harm.edit(s, on, x) })
	if err != nil {
		return truth, nil, false
	}
	return truth, compareSides(tb, s.side(c.captures), mutantHeads(tb, s, c.captures, 100+c.seed, edit)), true
}
