package tracetest

import (
	"fmt"
	"strings"
)

// HostileNames are texts that break out of a careless output: Markdown tables and code spans, HTML, mentions, workflow
// commands, CSV formulas, terminal escapes, bidirectional text, and very long ones. All are valid UTF-8 without NUL.
func HostileNames() []string {
	return []string{
		"a|b||c",
		"`code` and ``more`` and ```fence\n```",
		"<img src=x onerror=alert(1)>",
		"</td></table><script>alert(1)</script>",
		"@org/team please look, fixes #1, GH-2",
		"::error::x",
		"\n::set-output name=x::y\n",
		"##[group]x",
		"percent %0A%0D%25 encoded",
		"two\nlines\r\nthree\rfour",
		"# heading\n\n- list\n\n> quote",
		"[click](javascript:alert(1)) ![img](https://example.com/x.png)",
		"<https://example.com/> https://example.com/?a=1&b=2",
		"=cmd|'/C calc'!A0",
		"+1+1",
		"-2+3",
		"\t=tab",
		`"quoted",'single',comma;semicolon`,
		"right\u202eto left\u202c",
		"isolate\u2066x\u2069 mark\u200e\u200f",
		"zero\u200bwidth\u200d\ufeff",
		"line\u2028separator\u2029",
		"escape\x1b[31mred\x1b[0m\x07\x08\x7f\u0085\u009b31m",
		"tag \U000e0041\U000e0042 combining e\u0301\u0301\u0301\u0301",
		"control\x01\x02\x1f",
		"../../etc/passwd",
		"CON",
		"{{ template }} ${env} $(sh) `sh`",
		"\\escaped\\n \\| \\`",
		"~~strike~~ **bold** _it_ ***",
		"<!-- comment",
		"&lt;b&gt; &#x3c;",
		" leading and trailing ",
		"",
		strings.Repeat("long", 750),
		strings.Repeat("`", 300),
		strings.Repeat("<T", 200) + strings.Repeat(">", 200) + "(int)",
		strings.Repeat("漢字", 300),
	}
}

// Hostile has the names of [HostileNames] wherever a name can stand: kernels (demangled, short and mangled), API calls,
// NVTX ranges (inline and by id) and marks, threads, processes, the GPU, environment and metadata values, a diagnostic.
// For the name number n, counted from 0, one kernel runs on device 0 from 10·(n+1) to 10·(n+1)+5 µs, launched from
// within a range of the same name by an ordinary cudaLaunchKernel that ends where the kernel starts.
func Hostile(opts ...Option) *Builder {
	b := New(opts...)
	names := HostileNames()
	b.GPU(GPU{Name: "GPU " + names[2] + names[0]})
	b.Env("OsDescription", names[3])
	b.Env("NvDriverVersion", names[5]+names[6])
	b.Env(names[4], names[1])
	b.CaptureMeta("CUDA_GRAPH_TRACE_OPTIONS:MODE", names[9])
	b.CaptureMeta(names[11], names[18])
	b.ExportMeta("EXPORT_PRODUCT_VERSION", "2024.6.2 "+names[0]+names[2])
	main := b.Process(100, "python "+names[2]).Thread(100, "main "+names[0])
	for i, name := range names {
		pid := 1000 + int64(i)
		th := b.Process(pid, name).Thread(pid, fmt.Sprintf("%s#%d", name, i))
		at := 10 * us * (int64(i) + 1)
		main.Range(name, at-9*us, at+us)
		main.RangeByID(name, at-8*us, at)
		main.Mark(name, at-7*us)
		main.Launch(name, at-2*us, at, Kernel{Start: at, End: at + 5*us, Short: name, Mangled: name})
		b.API(API{Thread: th, Name: name, Start: at - 4*us, End: at - 3*us})
		b.OSRT(OSRT{Thread: th, Name: name, Start: at - 4*us, End: at - 3*us})
		b.Diagnostic(Diagnostic{At: at, Source: 1, Severity: 2, Text: name})
	}
	return b
}
