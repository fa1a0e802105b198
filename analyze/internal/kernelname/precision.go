package kernelname

// tensorCores say that a kernel computes on tensor cores or in a smaller type than FP32. PyTorch's memory-efficient
// attention multiplies FP32 on them from Ampere on, in TF32 three times; SGLang's sgemm_lora is a product by segment.
var tensorCores = parsePatterns(`tensorop tf32 bf16 bfloat fp16 _f16 f16_ half hgemm h884 h1688 h16816 s884 s1688 s16816
	i8816 hmma imma wgmma gmma nvjet e4m3 e5m2 e2m1 fp8 fp4 int8 _s8 _i8 fp64 _f64 dgemm double
	cutlassf_f32&_sm80 cutlassb_f32&_sm80 sgemm_lora`)

// singleWords say that a matrix product or attention works on FP32 without them.
var singleWords = []string{"sgemm", "f32f32_f32f32", "cutlassf_f32", "cutlassb_f32", "scudnn", "simt_s", "_simt", "fp32"}

// FP32Math reports whether a name says that a matrix product, a convolution or attention runs in FP32, without tensor
// cores. A name without such words proves nothing either way.
func FP32Math(name string, info *Info) bool {
	if info.Category != GEMM && info.Category != MoEGEMM && info.Category != Attention {
		return false
	}
	name = lower(clip(name, maxRead))
	return !tensorCores.in(name) && holds(name, singleWords...)
}

// doubleWords say that a matrix product works on FP64.
var doubleWords = []string{"dgemm", "dgemv", "d884", "f64f64", "_f64_", "double"}

// FP64Math reports whether a name says that a matrix product or a convolution runs in FP64.
func FP64Math(name string, info *Info) bool {
	if info.Category != GEMM && info.Category != MoEGEMM {
		return false
	}
	return holds(lower(clip(name, maxRead)), doubleWords...)
}

// ConvertsLayout reports whether a name says that a kernel only changes a tensor's layout.
func ConvertsLayout(name string) bool {
	return holds(lower(clip(name, maxRead)), "nchwtonhwc", "nhwctonchw", "nchw2nhwc", "nhwc2nchw", "nchw_to_nhwc",
		"nhwc_to_nchw", "convert_layout")
}
