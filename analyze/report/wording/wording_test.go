package wording

import (
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	for noun, want := range map[string][3]string{
		"line":      {"0 lines", "1 line", "2,000 lines"},
		"copy":      {"0 copies", "1 copy", "2,000 copies"},
		"delay":     {"0 delays", "1 delay", "2,000 delays"},
		"CUDA call": {"0 CUDA calls", "1 CUDA call", "2,000 CUDA calls"},
	} {
		for i, n := range []int{0, 1, 2000} {
			if got := Count(n, noun); got != want[i] {
				t.Errorf("%d %s: %q, want %q", n, noun, got, want[i])
			}
		}
	}
}

// Of a name of several words each counts: a word that many names share does not hide the one that is misspelt.
func TestSimilar(t *testing.T) {
	names := []string{"adapt_step", "batch_step", "commit_step", "decode_step", "layer"}
	for pattern, want := range map[string]string{"^decdoe_step$": "decode_step", "STEP": "adapt_step", `comit.*step\d+`: "commit_step"} {
		if got := Similar(pattern, names, 1); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

// A mean of counts has three digits and says that it is one: 117 calls in 58 steps are 2.017 each.
func TestMeans(t *testing.T) {
	for want, counts := range map[string][]float64{"1 per unit": {1}, "0 → 1 per unit": {0, 1}, "1,832 → 3 per unit": {1832, 3},
		"2.02 per unit on average": {117. / 58}, "0.517 → 1 per unit on average": {30. / 58, 1}, "0.0345 per unit on average": {2. / 58}} {
		if got := Means("per unit", counts...); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name, want string
		limit      int
	}{
		{"flash_fwd_kernel", "flash_fwd_kernel", 16},
		{"flash_fwd_kernel", "flash_fwd_kernel", 0},
		{"flash_fwd_kernel", "flash_fwd…rnel", 14}, // 14 = 9 + 1 + 4
		{"µµµµµµµµµµ", "µµµµ…µ", 6},
		{"flash", "f…", 2},
		{"flash", "…", 1},
		{"a, b, c, d, e, f", "a, b, c…, f", 12}, // no comma stands before the …
	} {
		if got := Shorten(c.name, c.limit); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.name, c.limit, got, c.want)
		}
	}
	if got := ShortenTo("abcdefghij", 6, 2); got != "abc…ij" {
		t.Errorf("the last two: %q", got)
	}
}

func TestEdits(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"kitten", "sitting", 3}, {"formt", "format", 1}, {"a", "", 1}, {"", "abc", 3},
		{"idel", "idle", 1}, {"grahps", "graphs", 1}, {"abc", "ca", 3}} {
		if n := Edits(tt.a, tt.b); n != tt.n {
			t.Errorf("%s, %s: %d, want %d", tt.a, tt.b, n, tt.n)
		}
	}
}

// Names of kernels that differ in their middle still do when they are shortened.
func TestShortenedKernelsDiffer(t *testing.T) {
	for name, want := range map[string]string{
		"void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, (unsigned long)1>>(int, T2, T3)":          "vectorized_elementwise_kernel<4, FillFunctor<float>, array<char *, 1>>",
		"void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, (int)3>>(int, T2, T3)":          "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, Array<char*, 3>>",
		"void at::native::<unnamed>::cunn_SoftMaxForward<(int)4, float, float, float, at::native::<unnamed>::SoftMaxForwardEpilogue>(T4 *, const T2 *, int)": "cunn_SoftMaxForward<4, float, float, float, SoftMaxForwardEpilogue>",
		"a range that somebody wrote: execute::model with a long long long long long long long text":                                                         "a range that somebody wrote: execute::model with a…long long long long text",
	} {
		if got := Shorten(name, 75); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestAShortenedNameHasOneEllipsis(t *testing.T) {
	for name, want := range map[string]string{"abcdefg…hijklmnop": "abcdefg…nop", "abcdefghijklmn…op": "abcdefgh…op"} {
		if got := ShortenTo(name, 12, 3); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 9, nil},
		{" \n ", 9, nil},
		{"one  two\nthree", 7, []string{"one two", "three"}},
		{"one two", 6, []string{"one", "two"}},
		{"a longword b", 4, []string{"a", "longword", "b"}},
		{"µµ µµ µ", 5, []string{"µµ µµ", "µ"}},
	} {
		if got := Wrap(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"--out=a/b:1": "--out=a/b:1", "": "''", "a b": "'a b'", "a'b": `'a'\''b'`,
		"$(rm)": "'$(rm)'", "`x`": "'`x`'", `\`: `'\'`, "a\nb": "'a\nb'", "~": "'~'", "é": "'é'",
	} {
		if got := ShellWord(s); got != want {
			t.Errorf("%s is quoted %s, want %s", s, got, want)
		}
	}
}
