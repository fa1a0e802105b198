package peaks

// Data sheets and white papers of NVIDIA, at https://www.nvidia.com and https://resources.nvidia.com. Figures that a data sheet gives
// "with sparsity" are halved here.
const (
	sheet    = "NVIDIA data sheet, "
	turing   = "NVIDIA Turing GPU Architecture white paper, appendix"
	ga102    = "NVIDIA Ampere GA102 GPU Architecture white paper, appendix"
	ada      = "NVIDIA Ada GPU Architecture white paper, appendix"
	rtxBlack = "NVIDIA RTX Blackwell GPU Architecture white paper, appendix"
)

const (
	gb = 1e9 // bytes
	tb = 1e12
)

var devices = []Device{
	// Volta and Turing
	{Names: []string{"Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"}, SMs: 80, Bandwidth: 900 * gb, tera: tera{fp64: 7.8, fp32: 15.7, half: 125}, Source: sheet + "V100 Tensor Core GPU"},
	{Names: []string{"Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"}, SMs: 80, Bandwidth: 900 * gb, tera: tera{fp64: 7, fp32: 14, half: 112}, Source: sheet + "V100 Tensor Core GPU"},
	{Names: []string{"Tesla V100S-PCIE-32GB"}, SMs: 80, Bandwidth: 1134 * gb, tera: tera{fp64: 8.2, fp32: 16.4, half: 130}, Source: sheet + "V100 Tensor Core GPU"},
	{Names: []string{"Tesla T4", "T4"}, SMs: 40, Bandwidth: 320 * gb, tera: tera{fp32: 8.1, half: 65}, Source: turing},
	{Names: []string{"GeForce RTX 2080 Ti"}, SMs: 68, Bandwidth: 616 * gb, tera: tera{fp32: 13.4, half: 53.8, half16: 107.6}, Source: turing},
	{Names: []string{"TITAN RTX"}, SMs: 72, Bandwidth: 672 * gb, tera: tera{fp32: 16.3, half: 130.5}, Source: turing},

	// Ampere
	{Names: []string{"A100-SXM4-40GB", "A100-PCIE-40GB"}, SMs: 108, Bandwidth: 1555 * gb, tera: tera{fp64: 9.7, fp32: 19.5, tf32: 156, half: 312}, Source: sheet + "A100 Tensor Core GPU"},
	{Names: []string{"A100-SXM4-80GB", "A800-SXM4-80GB"}, SMs: 108, Bandwidth: 2039 * gb, tera: tera{fp64: 9.7, fp32: 19.5, tf32: 156, half: 312}, Source: sheet + "A100 Tensor Core GPU"},
	{Names: []string{"A100 80GB PCIe", "A800 80GB PCIe"}, SMs: 108, Bandwidth: 1935 * gb, tera: tera{fp64: 9.7, fp32: 19.5, tf32: 156, half: 312}, Source: sheet + "A100 Tensor Core GPU"},
	{Names: []string{"A30"}, SMs: 56, Bandwidth: 933 * gb, tera: tera{fp64: 5.2, fp32: 10.3, tf32: 82, half: 165}, Source: sheet + "A30 Tensor Core GPU"},
	{Names: []string{"A40"}, SMs: 84, Bandwidth: 696 * gb, tera: tera{fp32: 37.4, tf32: 74.8, half: 149.7}, Source: sheet + "A40"},
	{Names: []string{"A10"}, SMs: 72, Bandwidth: 600 * gb, tera: tera{fp32: 31.2, tf32: 62.5, half: 125}, Source: sheet + "A10 Tensor Core GPU"},
	{Names: []string{"A10G"}, SMs: 80, Bandwidth: 600 * gb, tera: tera{fp32: 35, tf32: 35, half: 70}, Source: sheet + "A10G"},
	{Names: []string{"A16"}, SMs: 10, Bandwidth: 200 * gb, tera: tera{fp32: 4.5, tf32: 9, half: 17.9}, Source: sheet + "A16, one of its four GPUs"},
	{Names: []string{"A2"}, SMs: 10, Bandwidth: 200 * gb, tera: tera{fp32: 4.5, tf32: 9, half: 18}, Source: sheet + "A2 Tensor Core GPU"},
	{Names: []string{"RTX A6000"}, SMs: 84, Bandwidth: 768 * gb, tera: tera{fp32: 38.7, tf32: 77.4, half: 154.8}, Source: ga102},
	{Names: []string{"RTX A5000"}, SMs: 64, Bandwidth: 768 * gb, tera: tera{fp32: 27.8, tf32: 55.6, half: 111.1}, Source: sheet + "RTX A5000"},
	{Names: []string{"RTX A4000"}, SMs: 48, Bandwidth: 448 * gb, tera: tera{fp32: 19.2, tf32: 38.3, half: 76.7}, Source: sheet + "RTX A4000"},
	{Names: []string{"GeForce RTX 3060"}, SMs: 28, Bandwidth: 360 * gb, tera: tera{fp32: 12.7, tf32: 12.7, half: 25.5, half16: 51}, Source: ga102},
	{Names: []string{"GeForce RTX 3080"}, SMs: 68, Bandwidth: 760 * gb, tera: tera{fp32: 29.8, tf32: 29.8, half: 59.5, half16: 119}, Source: ga102},
	{Names: []string{"GeForce RTX 3090"}, SMs: 82, Bandwidth: 936 * gb, tera: tera{fp32: 35.6, tf32: 35.6, half: 71, half16: 142}, Source: ga102},
	{Names: []string{"GeForce RTX 3090 Ti"}, SMs: 84, Bandwidth: 1008 * gb, tera: tera{fp32: 40, tf32: 40, half: 80, half16: 160}, Source: ada},

	// Ada
	{Names: []string{"L4"}, SMs: 58, Bandwidth: 300 * gb, tera: tera{fp32: 30.3, tf32: 60, half: 121, fp8: 242.5}, Source: sheet + "L4 Tensor Core GPU"},
	{Names: []string{"L20"}, SMs: 92, Bandwidth: 864 * gb, tera: tera{fp32: 59.8, tf32: 59.8, half: 119.5, fp8: 239}, Source: sheet + "L20"},
	{Names: []string{"L40"}, SMs: 142, Bandwidth: 864 * gb, tera: tera{fp32: 90.5, tf32: 90.5, half: 181.05, fp8: 362}, Source: sheet + "L40"},
	{Names: []string{"L40S"}, SMs: 142, Bandwidth: 864 * gb, tera: tera{fp32: 91.6, tf32: 183, half: 362.05, fp8: 733}, Source: sheet + "L40S"},
	{Names: []string{"RTX 6000 Ada Generation"}, SMs: 142, Bandwidth: 960 * gb, tera: tera{fp32: 91.1, tf32: 182.1, half: 364.2, fp8: 728.5}, Source: sheet + "RTX 6000 Ada Generation"},
	{Names: []string{"RTX 5000 Ada Generation"}, SMs: 100, Bandwidth: 576 * gb, tera: tera{fp32: 65.3, tf32: 130.6, half: 261.1, fp8: 522.2}, Source: sheet + "RTX 5000 Ada Generation"},
	{Names: []string{"GeForce RTX 4060"}, SMs: 24, Bandwidth: 272 * gb, tera: tera{fp32: 15.1, tf32: 15.1, half: 30.2, half16: 60.5, fp8: 60.5}, Source: ada},
	{Names: []string{"GeForce RTX 4060 Ti"}, SMs: 34, Bandwidth: 288 * gb, tera: tera{fp32: 22.1, tf32: 22.1, half: 44.1, half16: 88.2, fp8: 88.2}, Source: ada},
	{Names: []string{"GeForce RTX 4070"}, SMs: 46, Bandwidth: 504 * gb, tera: tera{fp32: 29.1, tf32: 29.1, half: 58.3, half16: 116.6, fp8: 116.6}, Source: ada},
	{Names: []string{"GeForce RTX 4070 Ti"}, SMs: 60, Bandwidth: 504 * gb, tera: tera{fp32: 40.1, tf32: 40.1, half: 80.2, half16: 160.4, fp8: 160.4}, Source: ada},
	{Names: []string{"GeForce RTX 4080"}, SMs: 76, Bandwidth: 716.8 * gb, tera: tera{fp32: 48.7, tf32: 48.7, half: 97.5, half16: 194.9, fp8: 194.9}, Source: ada},
	{Names: []string{"GeForce RTX 4080 SUPER"}, SMs: 80, Bandwidth: 736 * gb, tera: tera{fp32: 52.2, tf32: 52.2, half: 104.4, half16: 208.9, fp8: 208.9}, Source: ada},
	{Names: []string{"GeForce RTX 4090"}, SMs: 128, Bandwidth: 1008 * gb, tera: tera{fp32: 82.6, tf32: 82.6, half: 165.2, half16: 330.3, fp8: 330.3}, Source: ada},

	// Hopper. The SXM models of H100, H200 and H800 compute alike: they differ in memory, links and FP64.
	{Names: []string{"H100 80GB HBM3"}, SMs: 132, Bandwidth: 3.35 * tb, tera: tera{fp64: 34, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}, Source: sheet + "H100 Tensor Core GPU (SXM)"},
	{Names: []string{"H100 PCIe"}, SMs: 114, Bandwidth: 2 * tb, tera: tera{fp64: 26, fp32: 51, tf32: 378, half: 756, fp8: 1513}, Source: sheet + "H100 Tensor Core GPU (PCIe)"},
	{Names: []string{"H100 NVL"}, SMs: 132, Bandwidth: 3.9 * tb, tera: tera{fp64: 30, fp32: 60, tf32: 417.5, half: 835.5, fp8: 1670.5}, Source: sheet + "H100 Tensor Core GPU (NVL)"},
	{Names: []string{"H800"}, SMs: 132, Bandwidth: 3.35 * tb, tera: tera{fp64: 1, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}, Source: sheet + "H800 Tensor Core GPU (SXM)"},
	{Names: []string{"H20"}, SMs: 78, Bandwidth: 4 * tb, tera: tera{fp64: 1, fp32: 44, tf32: 74, half: 148, fp8: 296}, Source: sheet + "H20"},
	{Names: []string{"H200"}, SMs: 132, Bandwidth: 4.8 * tb, tera: tera{fp64: 34, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}, Source: sheet + "H200 Tensor Core GPU (SXM)"},
	{Names: []string{"H200 NVL"}, SMs: 132, Bandwidth: 4.8 * tb, tera: tera{fp64: 30, fp32: 60, tf32: 417.5, half: 835.5, fp8: 1670.5}, Source: sheet + "H200 Tensor Core GPU (NVL)"},
	{Names: []string{"GH200 480GB", "GH200 120GB"}, SMs: 132, Bandwidth: 4 * tb, tera: tera{fp64: 34, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}, Source: sheet + "GH200 Grace Hopper Superchip, HBM3"},
	{Names: []string{"GH200 144G HBM3e"}, SMs: 132, Bandwidth: 4.9 * tb, tera: tera{fp64: 34, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}, Source: sheet + "GH200 Grace Hopper Superchip, HBM3e"},

	// Blackwell
	{Names: []string{"B100"}, SMs: 148, Bandwidth: 8 * tb, tera: tera{fp64: 30, fp32: 60, tf32: 875, half: 1750, fp8: 3500, fp4: 7000}, Source: sheet + "HGX B100, one of its eight GPUs"},
	{Names: []string{"B200"}, SMs: 148, Bandwidth: 8 * tb, tera: tera{fp64: 37, fp32: 75, tf32: 1125, half: 2250, fp8: 4500, fp4: 9000}, Source: sheet + "HGX B200, one of its eight GPUs"},
	{Names: []string{"GB200"}, SMs: 152, Bandwidth: 8 * tb, tera: tera{fp64: 40, fp32: 80, tf32: 1250, half: 2500, fp8: 5000, fp4: 10000}, Source: sheet + "GB200 NVL72, one of its 72 GPUs"},
	{Names: []string{"B300 SXM6 AC"}, SMs: 148, Bandwidth: 8 * tb, tera: tera{fp64: 1.2, fp32: 75, tf32: 1125, half: 2250, fp8: 4500, fp4: 13500}, Source: sheet + "HGX B300, one of its eight GPUs"},
	{Names: []string{"GB300"}, SMs: 152, Bandwidth: 8 * tb, tera: tera{fp64: 1.3, fp32: 80, tf32: 1250, half: 2500, fp8: 5000, fp4: 15000}, Source: sheet + "GB300 NVL72, one of its 72 GPUs"},
	{Names: []string{"GB10"}, SMs: 48, Bandwidth: 273 * gb, tera: tera{fp4: 500}, Source: sheet + "DGX Spark; it states fp4 alone"},
	{Names: []string{"RTX PRO 6000 Blackwell Workstation Edition"}, SMs: 188, Bandwidth: 1792 * gb, tera: tera{fp32: 126, tf32: 251.9, half: 503.8, fp8: 1007.6, fp4: 2015.2}, Source: "NVIDIA RTX Blackwell PRO GPU Architecture white paper, appendix"},
	{Names: []string{"RTX PRO 6000 Blackwell Server Edition"}, SMs: 188, Bandwidth: 1597 * gb, tera: tera{fp32: 120, tf32: 250, half: 500, fp8: 1000, fp4: 2000}, Source: sheet + "RTX PRO 6000 Blackwell Server Edition"},
	{Names: []string{"GeForce RTX 5070"}, SMs: 48, Bandwidth: 672 * gb, tera: tera{fp32: 30.9, tf32: 30.9, half: 61.7, half16: 123.5, fp8: 123.5, fp4: 493.9}, Source: rtxBlack},
	{Names: []string{"GeForce RTX 5070 Ti"}, SMs: 70, Bandwidth: 896 * gb, tera: tera{fp32: 43.9, tf32: 43.9, half: 87.9, half16: 175.8, fp8: 175.8, fp4: 703}, Source: rtxBlack},
	{Names: []string{"GeForce RTX 5080"}, SMs: 84, Bandwidth: 960 * gb, tera: tera{fp32: 56.3, tf32: 56.3, half: 112.6, half16: 225.1, fp8: 225.1, fp4: 900.4}, Source: rtxBlack},
	{Names: []string{"GeForce RTX 5090"}, SMs: 170, Bandwidth: 1792 * gb, tera: tera{fp32: 104.8, tf32: 104.8, half: 209.5, half16: 419, fp8: 419, fp4: 1676}, Source: rtxBlack},
}
