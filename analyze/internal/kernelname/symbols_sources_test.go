package kernelname

import (
	"cmp"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var checkouts = flag.String("checkout", "", "write symbols.tsv anew from a checkout: `PROJECT@VERSION=DIR`")

// TestDictionaryFromACheckout is the script that makes the dictionary: with
//
//	go test ./analyze/internal/kernelname -run TestDictionaryFromACheckout -checkout 'vLLM@v0.11.0=/src/vllm'
//
// it reads the kernels of a checkout and writes symbols.tsv anew. A symbol that is there, of the same project, gets the
// version; a new one gets the category that the rules give it, for a person to look at before it is committed, and none
// where they give none. It reads no namespaces: rows that have one stay as they are.
func TestDictionaryFromACheckout(t *testing.T) {
	if *checkouts == "" {
		t.Skip("no -checkout")
	}
	from, dir, _ := strings.Cut(*checkouts, "=")
	project, version, ok := strings.Cut(from, "@")
	if !ok || dir == "" || version == "" {
		t.Fatalf("-checkout %s: want PROJECT@VERSION=DIR", *checkouts)
	}
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".cu", ".cuh", ".h", ".hpp", ".py"}, filepath.Ext(path)) {
			return err
		}
		b, err := os.ReadFile(path)
		for _, s := range kernelsIn(string(b)) {
			found[s] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("symbols.tsv", []byte(withSource(symbolText, project, version, found)), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kernels in %s", len(found), dir)
}

var (
	cudaKernel   = regexp.MustCompile(`__global__\s+(?:[^;{}()]*?__launch_bounds__\s*\([^;{}]*?\)\s+)?[^;{}()]*?\b([A-Za-z_]\w*)\s*\(`)
	tritonKernel = regexp.MustCompile(`@triton\.jit[^\n]*\n(?:@[^\n]*\n)*def\s+([A-Za-z_]\w*)\s*\(`)
)

// kernelsIn are the names of the kernels that a source declares: __global__ functions of CUDA, and of Triton.
func kernelsIn(source string) []string {
	var list []string
	for _, re := range []*regexp.Regexp{cudaKernel, tritonKernel} {
		for _, m := range re.FindAllStringSubmatch(source, -1) {
			if m[1] != "__launch_bounds__" {
				list = append(list, m[1])
			}
		}
	}
	return list
}

// withSource is the dictionary with the version in which symbols of a project were read, and its new ones.
func withSource(text, project, version string, found map[string]bool) string {
	heading, rest, _ := strings.Cut(text, "\n")
	rows := map[string]string{}
	for line := range strings.Lines(rest) {
		symbol, more, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		rows[symbol] = more
	}
	for symbol := range found {
		f := strings.Split(rows[symbol], "\t")
		category := Category(f[0])
		if rows[symbol] == "" {
			v := newView(symbol, Canonical(symbol))
			category = v.ruled().cat
		} else if f[1] != project {
			continue
		}
		if category.Named() {
			rows[symbol] = strings.Join([]string{string(category), project, version}, "\t")
		}
	}
	var b strings.Builder
	b.WriteString(heading + "\n")
	for _, symbol := range slices.SortedFunc(maps.Keys(rows), cmp.Compare[string]) {
		b.WriteString(symbol + "\t" + rows[symbol] + "\n")
	}
	return b.String()
}

func TestKernelsInSources(t *testing.T) {
	got := kernelsIn(`
template <typename T, int N>
__global__ void __launch_bounds__(128) rms_norm_kernel(T* out, const T* in) {}
static __global__ void soft_max_f32(const float * x, float * dst);
__host__ void launch() { rms_norm_kernel<<<1, 2>>>(a, b); }
@triton.jit
def _fwd_kernel(q, k):
    pass
@triton.jit(do_not_specialize=["n"])
@other
def _topk_kernel(x): pass
def no_kernel(x): pass
`)
	if want := []string{"rms_norm_kernel", "soft_max_f32", "_fwd_kernel", "_topk_kernel"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A symbol of another project keeps its row; one that no rule names gets none.
func TestDictionaryTakesItsSources(t *testing.T) {
	got := withSource("symbol\tcategory\tproject\tread_in\na_softmax\tsoftmax\tX\t-\nb_gemm\tgemm\tY\t-\n", "X", "v2",
		map[string]bool{"a_softmax": true, "b_gemm": true, "c_rms_norm_kernel": true, "qqq": true})
	want := "symbol\tcategory\tproject\tread_in\na_softmax\tsoftmax\tX\tv2\nb_gemm\tgemm\tY\t-\nc_rms_norm_kernel\tnorm\tX\tv2\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
