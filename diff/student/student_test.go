package student_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/nsys-llm/explain/diff/student"
	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

// The tails were worked out to 50 digits by the finite sums for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and
// 26.7.4).
func TestStudentTail(t *testing.T) {
	for _, c := range []struct{ t, df, want float64 }{
		{0.5, 1, 3.524163823495667369e-01}, {1, 1, 0.25}, {3, 2, 4.773298313335456317e-02}, {0.1, 3, 4.633261744004029126e-01},
		{2.5, 4, 3.338327240599407025e-02}, {4, 5, 5.161707740415726747e-03}, {1.5, 7, 8.864924349498501388e-02},
		{2, 10, 3.669401738537018259e-02}, {6, 10, 6.605443017739280002e-05}, {1.96, 30, 2.967115644802523558e-02},
		{10, 30, 2.287625704114806442e-11}, {1.96, 120, 2.615683822291377594e-02}, {3.5, 1000, 2.428871729839161256e-04},
		{0.01, 1000, 4.960116409660936254e-01}, {40, 4, 1.167008161300634299e-06},
	} {
		got := student.Tail(c.t, c.df)
		if math.Abs(got/c.want-1) > 1e-11 {
			t.Errorf("P(T > %v), %v degrees of freedom = %.18g, want %.18g", c.t, c.df, got, c.want)
		}
		near(t, "the other tail", student.Tail(-c.t, c.df), 1-c.want, 1e-12)
	}
	// For 1 and 2 degrees of freedom the distribution has closed forms; far out, the tail of df = 1 is 1/(πt).
	near(t, "df 1, far out", student.Tail(1e200, 1)*math.Pi*1e200, 1, 1e-12)
	near(t, "df 2", student.Tail(0.7, 2), 0.5*(1-0.7/math.Sqrt(2+0.49)), 1e-14)
	// From MaxDF on it is normal; just below it hardly differs: the first correction is φ(z)(z³+z)/(4 df).
	near(t, "normal", student.Tail(1.959963984540054, student.MaxDF), 0.025, 1e-14)
	const z, density = 1.959963984540054, 0.058445069805035
	near(t, "nearly normal", student.Tail(z, student.MaxDF/10), 0.025+density*(z*z*z+z)/(4*student.MaxDF/10), 1e-9)
	near(t, "nearly normal", student.Tail(z, 1e5), 0.025+density*(z*z*z+z)/4e5, 1e-9)
	if !math.IsNaN(student.Tail(1, 0)) || student.Tail(math.Inf(1), 3) != 0 || student.Tail(0, 3) != 0.5 {
		t.Error("edges of the tail")
	}
}

// Table values, to 15 digits by the same sums.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ q, df, want float64 }{
		{0.025, 1, 12.706204736174705}, {0.025, 2, 4.302652729749464}, {0.025, 4, 2.776445105197794}, {0.025, 5, 2.570581835636315},
		{0.025, 10, 2.228138851986275}, {0.025, 30, 2.042272456301238}, {0.025, 120, 1.979930405082441}, {0.005, 4, 4.604094871349993},
		{0.005, 9, 3.249835541592126}, {0.01, 4, 3.746947387979197}, {0.01, 2, 6.964556734283274}, {0.01, 9, 2.821437925025809},
		{0.05, 4, 2.131846786326650}, {0.0005, 3, 12.923978636687483}, {0.25, 6, 0.717558196491413},
		{1e-300, 1, 3.183098861837907e299}, {0.025, student.MaxDF, 1.959963984540054}, {0.2, student.MaxDF, 0.841621233572914}, {0.5, 3, 0}, {0.975, 4, -2.776445105197794},
	} {
		near(t, fmt.Sprintf("quantile %v of %v degrees of freedom", c.q, c.df), student.Quantile(c.q, c.df), c.want, 1e-12)
	}
	for _, q := range []float64{0, 1, -1, math.NaN()} {
		if !math.IsNaN(student.Quantile(q, 3)) {
			t.Errorf("quantile %v is a number", q)
		}
	}
}

func TestQuantileInvertsTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		df := math.Exp(rapid.Float64Range(-0.5, 18).Draw(t, "ln df"))
		q := math.Exp(rapid.Float64Range(-600*min(df, 1), -0.01).Draw(t, "ln q")) // a quantile is some q^(-1/df)
		if back := student.Tail(student.Quantile(q, df), df); math.Abs(back/q-1) > 1e-8 {
			t.Fatalf("the tail beyond the quantile %v of %v degrees of freedom is %v", q, df, back)
		}
	})
}

func TestLeastInvertsBeyond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := math.Exp(rapid.Float64Range(-20, -0.7).Draw(t, "ln p"))
		df := math.Exp(rapid.Float64Range(-0.5, 18).Draw(t, "ln df"))
		tau := rapid.Float64Range(0, 10).Draw(t, "tau")
		se := math.Exp(rapid.Float64Range(-10, 3).Draw(t, "ln se"))
		least := student.Least(tau, se, df, p, student.Quantile(p, df))
		if back := student.Beyond(least, tau, se, df); math.Abs(back/p-1) > 1e-8 {
			t.Fatalf("the probability of %v, least beyond %v ± %v of %v degrees of freedom at %v, is %v", least, tau, se, df, p, back)
		}
	})
	if least := student.Least(0.1, 0, 3, 0.05, 2.35); least != 0.1 {
		t.Errorf("the least effect without noise is %v", least)
	}
}
