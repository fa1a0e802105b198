package kernelname

import "testing"

func TestFP32Math(t *testing.T) {
	for name, want := range map[string]bool{
		"ampere_sgemm_128x64_tn":                                           true,
		"cutlass_80_simt_sgemm_128x256_8x4_nt_align1":                      true,
		"sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_64x64x8_s3":                 true,
		"fmha_cutlassB_f32_aligned_64x64_k32_dropout_sm75":                 true,
		"fmha_cutlassB_f32_aligned_64x64_k32_dropout_sm80":                 false, // OpMultiplyAddFastF32: TF32 three times
		"fmha_cutlassF_f32_aligned_64x64_rf_sm80":                          false,
		"bmm_E2m1_E2m1E2m1_Fp32_Ab16_Bb16_Cb16_t128x8x512_s5":              false, // NVFP4; Fp32 accumulates
		"ampere_scudnn_128x32_relu_small_nn_v1":                            true,
		"sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4": false,
		"cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4":             false,
		"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn":       false,
		"_sgemm_lora_a_kernel":                                             false, // SGLang's: products by segment, of any type
		"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN":                   false,
		"fmha_cutlassF_bf16_aligned_64x64_rf_sm80":                         false,
		"void gemv2T_kernel_val<int, int, double, double, double, double>": false,
		"vectorized_elementwise_kernel<4, float>":                          false,
	} {
		info := Classify(name)
		if got := FP32Math(name, &info); got != want {
			t.Errorf("%s (%s): %v", name, info.Category, got)
		}
	}
	for name, want := range map[string]bool{"void cudnn::ops::nchwToNhwcKernel<float, float, float, 0, 1, 2>": true, "nchw_pooling": false} {
		if ConvertsLayout(name) != want {
			t.Errorf("%s: layout conversion %v", name, !want)
		}
	}
}
