package kernelname

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzClassify(f *testing.F) {
	f.Add(longName)
	f.Add("triton_poi_fused_add_3_0d1d2de")
	f.Add("void unnamed>::f<unnamed>::T<2>, 4>(T1)")
	f.Fuzz(func(t *testing.T, name string) {
		info := Classify(name)
		if again := Canonical(info.Canonical); again != info.Canonical {
			t.Errorf("%q → %q → %q", name, info.Canonical, again)
		}
		if info.Category == "" || info.Library == "" || info.Component == "" || !strings.HasPrefix(info.Family, info.Library+"/") {
			t.Errorf("%q: %+v", name, info)
		}
		if info.Comm != (info.Category == Comm) || info.Comm != (info.Collective != "") {
			t.Errorf("%q: comm %v, category %q, collective %q", name, info.Comm, info.Category, info.Collective)
		}
		if n := utf8.RuneCountInString(info.Display); n > maxDisplay || n == 0 && strings.TrimSpace(name) != "" {
			t.Errorf("%q: display %q", name, info.Display)
		}
	})
}

func FuzzRangeCanonical(f *testing.F) {
	f.Add("aten::mm, seq = 45536, op_id = 991473")
	f.Add("step 12 of request 3f2a9b1c-7d2e-4a6b-9c11-0123456789ab took 1.5 ms")
	f.Add("prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]")
	f.Fuzz(func(t *testing.T, text string) {
		key := rangeCanonical(text)
		if again := rangeCanonical(key); again != key {
			t.Errorf("%q → %q → %q", text, key, again)
		}
		if got := string(AppendRangeCanonical([]byte("x#"), text)); got != "x#"+key {
			t.Errorf("%q: appended %q, want %q", text, got, key)
		}
		if len(key) > len(text) {
			t.Errorf("%q → %q grew", text, key)
		}
		RangeComponent(text)
	})
}

func FuzzParseMarker(f *testing.F) {
	f.Add("execute_context_2(14721)_generation_3(3)")
	f.Add("step[MIXED bs=2 c=1 g=1 c_sq=5]")
	f.Add("[Executor] _forward_step 7: 2 ctx reqs, 100 ctx tokens, 3 gen reqs")
	f.Add("decode[bs=117/128 tok=117]")
	f.Add("BatchDecode a=b")
	f.Add("decode_step_3 bs=x")
	f.Fuzz(func(t *testing.T, text string) {
		ParseStep(text)
		m, ok := ParseMarker(text)
		if !ok {
			if m != (Marker{}) {
				t.Errorf("%q: %+v although none", text, m)
			}
			return
		}
		for _, n := range []int64{m.PrefillRequests, m.PrefillTokens, m.DecodeRequests, m.DecodeTokens, m.Batch, m.Step} {
			if n < Unknown {
				t.Errorf("%q: negative number in %+v", text, m)
			}
		}
		if m.Engine == "" || m.Phase == "" && m.Engine != EnginePyTorch {
			t.Errorf("%q: %+v", text, m)
		}
		if m.Phase != "" && BuiltinPhase(text) != m.Phase {
			t.Errorf("%q: phase %q, BuiltinPhase %q", text, m.Phase, BuiltinPhase(text))
		}
		if _, ok := ParseMarker(rangeCanonical(text)); !ok {
			t.Errorf("%q: no marker any more as %q", text, rangeCanonical(text))
		}
	})
}
