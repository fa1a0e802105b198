package gpu

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// fp32Finding names matrix arithmetic in FP32 without tensor cores, if the GPU has them. It is worth what the rates
// that NVIDIA states for the GPU allow, at an efficiency that stays; all of the time if they are not known.
func fp32Finding(in *kit.Input, out *kit.Output, s *kit.Step) {
	if in.Trace.GPU(s.Device.ID).CapMajor < 7 { // no tensor cores
		return
	}
	gpu := in.Trace.GPU(s.Device.ID).Name
	half, tf32 := peaks.OverFP32(gpu)
	dtypes, leaves := `BF16 or FP16 (torch.autocast, dtype="bfloat16")`, 0.0
	rate, keep := ", for which this GPU has tensor cores (how much faster they are is not known here)",
		"If FP32 must stay, TF32 uses them too from Ampere on, on some GPUs no faster: "+allowTF32+"."
	if half > 0 {
		rate = fmt.Sprintf(", which this GPU runs at up to %.2g times the rate of FP32", half)
		leaves = 1 / max(2, half) // half the bytes, too
		switch {
		case tf32 == 0:
			dtypes, keep = `FP16 (torch.autocast, dtype="float16")`, ""
		case tf32 > 1.2:
			keep = fmt.Sprintf("If FP32 must stay, TF32 (%s) runs at up to %.2g times its rate.", allowTF32, tf32)
		default:
			keep = "TF32 gains nothing here: this GPU runs it as fast as FP32."
		}
	}
	advice := []string{"Compute in " + dtypes + rate + "; check accuracy."}
	if keep != "" {
		advice = append(advice, keep)
	}
	const title = "Matrix arithmetic in FP32, without tensor cores, takes "
	if f := arithmetic(in, out, s, "fp32_math", title, kernelname.FP32Math, advice...); f != nil {
		f.Leaves(leaves)
	}
}

const allowTF32 = `torch.set_float32_matmul_precision("high")`

// fp64Finding names matrix arithmetic in FP64, if the GPU runs it at a small part of its rate in FP32.
func fp64Finding(in *kit.Input, out *kit.Output, s *kit.Step) {
	if slowFP64(in, s.Device.ID) {
		arithmetic(in, out, s, "fp64_math",
			"Matrix arithmetic in FP64, which this GPU runs at 1/32 of the rate of FP32 or less, takes ",
			kernelname.FP64Math,
			"Compute in FP32 or below where accuracy allows (check the type of the arrays: NumPy's default is float64), "+
				"or run FP64 on a GPU built for it (V100, A100, H100).")
	}
}

// arithmetic makes a finding of the kernels whose names tell a type; nil if there are none.
func arithmetic(in *kit.Input, out *kit.Output, s *kit.Step, id, title string,
	are func(string, *kernelname.Info) bool, advice ...string) *kit.Finding {
	claims, ns, top := kernelClaims(in, s, func(n int) bool { return are(in.Trace.Kernels.Names[n].Name, &in.Kinds[n]) })
	if top < 0 {
		return nil
	}
	name := in.Kinds[top].Display
	return out.FindAs(id, title+unit.Percent(s.Share(ns))+" of the "+s.What()+mostIs(s.Kernels[top], ns, name),
		kernelRefs(in, s, top), advice...).At(name).Costs(s.Worth(ns), claims...)
}

// mostIs names the kernel that takes the largest part of some time, as the end of a sentence.
func mostIs(largest, of int64, name string) string {
	if 2*largest > of {
		return ": most of it " + kit.Quoted(name)
	}
	return ": the largest is " + kit.Quoted(name)
}

// slowFP64 reports whether a GPU runs FP64 at 1/32 of the rate of FP32 or less: all of compute capability 6 or later
// except those for data centres, whose capability ends in 0.
func slowFP64(in *kit.Input, device int32) bool {
	gpu := in.Trace.GPU(device)
	return gpu.CapMajor >= 6 && gpu.CapMin > 0
}
