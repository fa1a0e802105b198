package kernelname

import (
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"
)

// dtypes by the C++ type that names them, as spelled without namespace.
var dtypes = map[string]string{
	"float": "f32", "double": "f64", "float2": "f32", "float4": "f32",
	"half": "f16", "__half": "f16", "Half": "f16", "half_t": "f16", "__half2": "f16", "half2": "f16", "nv_half": "f16",
	"bfloat16_t": "bf16", "__nv_bfloat16": "bf16", "__nv_bfloat162": "bf16", "BFloat16": "bf16", "nv_bfloat16": "bf16",
	"__hip_bfloat16": "bf16",
	"float_e4m3_t":   "e4m3", "__nv_fp8_e4m3": "e4m3", "Float8_e4m3fn": "e4m3", "fp8_e4m3_t": "e4m3",
	"float_ue4m3_t": "ue4m3",
	"float_e5m2_t":  "e5m2", "__nv_fp8_e5m2": "e5m2", "Float8_e5m2": "e5m2",
	"float_e2m1_t": "e2m1", "__nv_fp4_e2m1": "e2m1", "float_e2m1_unpacksmem_t": "e2m1",
	"tfloat32_t": "tf32", "int8_t": "i8", "int4b_t": "i4", "uint4b_t": "u4",
}

// intTypes count only if no floating type is named.
var intTypes = map[string]string{
	"long": "i64", "int": "i32", "short": "i16", "char": "i8", "bool": "bool",
	"int64_t": "i64", "int32_t": "i32", "uint8_t": "u8", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64",
}

// isPlainType reports whether s names a scalar type and nothing else.
func isPlainType(s string) bool {
	for w := range strings.FieldsSeq(s) {
		if dtypes[w] == "" && intTypes[w] == "" && w != "unsigned" && w != "signed" && w != "void" && w != "uint4" {
			return false
		}
	}
	return true
}

// typeNamed returns the first floating type that s names as a whole word.
func typeNamed(s string) string {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) }) {
		if t := dtypes[w]; t != "" {
			return t
		}
	}
	return ""
}

// dtypeOf returns the type that one template argument spells.
func dtypeOf(s string) string {
	if t := typeNamed(s); t != "" {
		return t
	}
	for w := range strings.FieldsSeq(s) {
		if t := intTypes[w]; t != "" {
			return t
		}
	}
	return ""
}

// nameTypes are the spellings inside flat kernel names, longest first, each with =TYPE if it does not
// spell its type. f8… are NCCL's.
var nameTypes = strings.Fields(`bfloat16=bf16 mxe4m3 mxe2m1 nvfp4=e2m1 mxfp4=mxe2m1 mxfp8=mxe4m3 ue4m3 f8e4m3=e4m3 f8e5m2=e5m2
	e4m3 e5m2 e2m1 bf16 fp16=f16 tf32 half=f16 fp32=f32 float=f32 int8=i8 f16 f32 f64 fp8 fp4 s8=i8 i8 u8 i32 u32 i64 u64`)

// leadingType returns the type a part of a flat name starts with, and what follows.
func leadingType(part string) (dtype, rest string) {
	for _, t := range nameTypes {
		spelled, dtype, _ := strings.Cut(t, "=")
		if rest, ok := strings.CutPrefix(part, spelled); ok {
			return cmp.Or(dtype, spelled), rest
		}
	}
	return "", part
}

// flatType returns the first type that a lower-case flat name spells between
// underscores: bf16 of "cutlass_80_tensorop_bf16_s16816gemm_…".
func flatType(name string) string {
	for part := range strings.SplitSeq(name, "_") {
		if t, rest := leadingType(part); t != "" {
			if again, _ := leadingType(rest); rest == "" || again != "" {
				return t
			}
		}
	}
	return ""
}

// nvjetTypes are the letters of cuBLAS's nvjet kernels whose meaning is established: nvjet_tst_… is bf16 in, f32
// accumulation, bf16 out, and nvjet_qqtst_… names A, B, C, accumulator and D. q was seen on FP8, o on NVFP4.
var nvjetTypes = map[byte]string{'h': "f16", 't': "bf16", 's': "f32", 'd': "f64", 'q': "e4m3", 'o': "e2m1"}

// nvjetType returns input[_output] of a lower-case nvjet name, or its letters unchanged if one is unknown.
func nvjetType(name string) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "nvjet_"), "_") {
		if strings.HasPrefix(part, "sm") && len(part) > 2 && isDigit(part[2]) {
			continue
		}
		if n := len(part); n != 3 && n != 5 {
			return part
		}
		in, out := nvjetTypes[part[0]], nvjetTypes[part[len(part)-1]]
		if in == "" || out == "" {
			return part
		}
		return joinTypes(in, out)
	}
	return ""
}

func joinTypes(in, out string) string {
	if out == "" || in == out {
		return in
	}
	return in + "_" + out
}

// gemmType returns the input type of a matrix product, and its output type if the name states both.
func (v view) gemmType(y symbol) string {
	name := lower(y.base)
	switch {
	case strings.HasPrefix(name, "nvjet_"):
		return nvjetType(name)
	case strings.HasPrefix(name, "bmm_"): // trtllm-gen: bmm_OUT_AB_ACC_…
		parts := strings.SplitN(name, "_", 4)
		if len(parts) < 4 {
			break
		}
		out, _ := leadingType(parts[1])
		in, _ := leadingType(parts[2])
		return joinTypes(in, out)
	case strings.HasPrefix(name, "cutlass_") || strings.HasPrefix(name, "cutlass3x_"):
		// Types around "…gemm": output before it, inputs after; a single type is the inputs'.
		if at := strings.Index(name, "gemm"); at > 0 {
			if in := flatType(name[at+len("gemm"):]); in != "" {
				return in
			}
		}
	}
	return cmp.Or(flatType(name), typeNamed(y.text), gemmLetter(name))
}

// gemmLetter reads BLAS's letter: sgemm, h16816gemm, s1688tf32gemm.
func gemmLetter(name string) string {
	m := letters.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	return map[string]string{"tf32": "tf32", "s": "f32", "d": "f64", "h": "f16", "i": "i8"}[cmp.Or(m[1:]...)]
}

var letters = regexp.MustCompile(`(?:^|_)(?:[^_]*(tf32)[^_]*|(s)|([dhi])\d*)gem`)
