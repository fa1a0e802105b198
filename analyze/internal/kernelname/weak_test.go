package kernelname

import "testing"

// A word that other kernels have too is a hint and no more; the dictionary and a plain name are not weak.
func TestWeakWordsAreMarked(t *testing.T) {
	for name, want := range map[string]bool{
		"my_gate_kernel": true, "score_kernel(float*)": true, "sum_all(float*)": true,
		"ampere_sgemm_128x64_tn": false, "flash_fwd_kernel": false, "softmax_warp_forward": false, "zzz": false,
	} {
		if info := Classify(name); info.Weak != want {
			t.Errorf("%s: %s, weak %v", name, info.Category, info.Weak)
		}
	}
	if ClassifyAs("my_gate_kernel", GEMM).Weak {
		t.Error("what the user says is no hint")
	}
}
