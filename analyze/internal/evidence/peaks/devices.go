package peaks

// Data sheets and white papers of NVIDIA, at https://www.nvidia.com and https://resources.nvidia.com. Figures that a
// data sheet states "with sparsity" are halved here.
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

type names = []string

// Peaks of chips that several devices have.
var (
	a100 = tera{fp64: 9.7, fp32: 19.5, tf32: 156, half: 312}
	h100 = tera{fp64: 34, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9}
)

// The names of a device, its streaming multiprocessors, the bandwidth of its memory, its peaks, and the source of both.
var devices = []Device{
	// Volta and Turing
	{names{"Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"}, 80, 900 * gb, tera{fp64: 7.8, fp32: 15.7, half: 125},
		sheet + "V100 Tensor Core GPU"},
	{names{"Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"}, 80, 900 * gb, tera{fp64: 7, fp32: 14, half: 112},
		sheet + "V100 Tensor Core GPU"},
	{names{"Tesla V100S-PCIE-32GB"}, 80, 1134 * gb, tera{fp64: 8.2, fp32: 16.4, half: 130},
		sheet + "V100 Tensor Core GPU"},
	{names{"Tesla T4", "T4"}, 40, 320 * gb, tera{fp32: 8.1, half: 65}, turing},
	{names{"GeForce RTX 2080 Ti"}, 68, 616 * gb, tera{fp32: 13.4, half: 53.8, half16: 107.6}, turing},
	{names{"TITAN RTX"}, 72, 672 * gb, tera{fp32: 16.3, half: 130.5}, turing},

	// Ampere
	{names{"A100-SXM4-40GB", "A100-PCIE-40GB"}, 108, 1555 * gb, a100, sheet + "A100 Tensor Core GPU"},
	{names{"A100-SXM4-80GB", "A800-SXM4-80GB"}, 108, 2039 * gb, a100, sheet + "A100 Tensor Core GPU"},
	{names{"A100 80GB PCIe", "A800 80GB PCIe"}, 108, 1935 * gb, a100, sheet + "A100 Tensor Core GPU"},
	{names{"A30"}, 56, 933 * gb, tera{fp64: 5.2, fp32: 10.3, tf32: 82, half: 165}, sheet + "A30 Tensor Core GPU"},
	{names{"A40"}, 84, 696 * gb, tera{fp32: 37.4, tf32: 74.8, half: 149.7}, sheet + "A40"},
	{names{"A10"}, 72, 600 * gb, tera{fp32: 31.2, tf32: 62.5, half: 125}, sheet + "A10 Tensor Core GPU"},
	{names{"A10G"}, 80, 600 * gb, tera{fp32: 35, tf32: 35, half: 70}, sheet + "A10G"},
	{names{"A16"}, 10, 200 * gb, tera{fp32: 4.5, tf32: 9, half: 17.9}, sheet + "A16, one of its four GPUs"},
	{names{"A2"}, 10, 200 * gb, tera{fp32: 4.5, tf32: 9, half: 18}, sheet + "A2 Tensor Core GPU"},
	{names{"RTX A6000"}, 84, 768 * gb, tera{fp32: 38.7, tf32: 77.4, half: 154.8}, ga102},
	{names{"RTX A5000"}, 64, 768 * gb, tera{fp32: 27.8, tf32: 55.6, half: 111.1}, sheet + "RTX A5000"},
	{names{"RTX A4000"}, 48, 448 * gb, tera{fp32: 19.2, tf32: 38.3, half: 76.7}, sheet + "RTX A4000"},
	{names{"GeForce RTX 3060"}, 28, 360 * gb, tera{fp32: 12.7, tf32: 12.7, half: 25.5, half16: 51}, ga102},
	{names{"GeForce RTX 3080"}, 68, 760 * gb, tera{fp32: 29.8, tf32: 29.8, half: 59.5, half16: 119}, ga102},
	{names{"GeForce RTX 3090"}, 82, 936 * gb, tera{fp32: 35.6, tf32: 35.6, half: 71, half16: 142}, ga102},
	{names{"GeForce RTX 3090 Ti"}, 84, 1008 * gb, tera{fp32: 40, tf32: 40, half: 80, half16: 160}, ada},

	// Ada
	{names{"L4"}, 58, 300 * gb, tera{fp32: 30.3, tf32: 60, half: 121, fp8: 242.5}, sheet + "L4 Tensor Core GPU"},
	{names{"L20"}, 92, 864 * gb, tera{fp32: 59.8, tf32: 59.8, half: 119.5, fp8: 239}, sheet + "L20"},
	{names{"L40"}, 142, 864 * gb, tera{fp32: 90.5, tf32: 90.5, half: 181.05, fp8: 362}, sheet + "L40"},
	{names{"L40S"}, 142, 864 * gb, tera{fp32: 91.6, tf32: 183, half: 362.05, fp8: 733}, sheet + "L40S"},
	{names{"RTX 6000 Ada Generation"}, 142, 960 * gb, tera{fp32: 91.1, tf32: 182.1, half: 364.2, fp8: 728.5},
		sheet + "RTX 6000 Ada Generation"},
	{names{"RTX 5000 Ada Generation"}, 100, 576 * gb, tera{fp32: 65.3, tf32: 130.6, half: 261.1, fp8: 522.2},
		sheet + "RTX 5000 Ada Generation"},
	{names{"GeForce RTX 4060"}, 24, 272 * gb, tera{fp32: 15.1, tf32: 15.1, half: 30.2, half16: 60.5, fp8: 60.5}, ada},
	{names{"GeForce RTX 4060 Ti"}, 34, 288 * gb, tera{fp32: 22.1, tf32: 22.1, half: 44.1, half16: 88.2, fp8: 88.2},
		ada},
	{names{"GeForce RTX 4070"}, 46, 504 * gb, tera{fp32: 29.1, tf32: 29.1, half: 58.3, half16: 116.6, fp8: 116.6}, ada},
	{names{"GeForce RTX 4070 Ti"}, 60, 504 * gb, tera{fp32: 40.1, tf32: 40.1, half: 80.2, half16: 160.4, fp8: 160.4},
		ada},
	{names{"GeForce RTX 4080"}, 76, 716.8 * gb, tera{fp32: 48.7, tf32: 48.7, half: 97.5, half16: 194.9, fp8: 194.9},
		ada},
	{names{"GeForce RTX 4080 SUPER"}, 80, 736 * gb,
		tera{fp32: 52.2, tf32: 52.2, half: 104.4, half16: 208.9, fp8: 208.9},
		ada},
	{names{"GeForce RTX 4090"}, 128, 1008 * gb, tera{fp32: 82.6, tf32: 82.6, half: 165.2, half16: 330.3, fp8: 330.3},
		ada},

	// Hopper. The SXM models of H100, H200 and H800 compute alike: they differ in memory, links and FP64.
	{names{"H100 80GB HBM3"}, 132, 3.35 * tb, h100, sheet + "H100 Tensor Core GPU (SXM)"},
	{names{"H100 PCIe"}, 114, 2 * tb, tera{fp64: 26, fp32: 51, tf32: 378, half: 756, fp8: 1513},
		sheet + "H100 Tensor Core GPU (PCIe)"},
	{names{"H100 NVL"}, 132, 3.9 * tb, tera{fp64: 30, fp32: 60, tf32: 417.5, half: 835.5, fp8: 1670.5},
		sheet + "H100 Tensor Core GPU (NVL)"},
	{names{"H800"}, 132, 3.35 * tb, tera{fp64: 1, fp32: 67, tf32: 494.7, half: 989.4, fp8: 1978.9},
		sheet + "H800 Tensor Core GPU (SXM)"},
	{names{"H20"}, 78, 4 * tb, tera{fp64: 1, fp32: 44, tf32: 74, half: 148, fp8: 296}, sheet + "H20"},
	{names{"H200"}, 132, 4.8 * tb, h100, sheet + "H200 Tensor Core GPU (SXM)"},
	{names{"H200 NVL"}, 132, 4.8 * tb, tera{fp64: 30, fp32: 60, tf32: 417.5, half: 835.5, fp8: 1670.5},
		sheet + "H200 Tensor Core GPU (NVL)"},
	{names{"GH200 480GB", "GH200 120GB"}, 132, 4 * tb, h100, sheet + "GH200 Grace Hopper Superchip, HBM3"},
	{names{"GH200 144G HBM3e"}, 132, 4.9 * tb, h100, sheet + "GH200 Grace Hopper Superchip, HBM3e"},

	// Blackwell
	{names{"B100"}, 148, 8 * tb, tera{fp64: 30, fp32: 60, tf32: 875, half: 1750, fp8: 3500, fp4: 7000},
		sheet + "HGX B100, one of its eight GPUs"},
	{names{"B200"}, 148, 8 * tb, tera{fp64: 37, fp32: 75, tf32: 1125, half: 2250, fp8: 4500, fp4: 9000},
		sheet + "HGX B200, one of its eight GPUs"},
	{names{"GB200"}, 152, 8 * tb, tera{fp64: 40, fp32: 80, tf32: 1250, half: 2500, fp8: 5000, fp4: 10000},
		sheet + "GB200 NVL72, one of its 72 GPUs"},
	{names{"B300 SXM6 AC"}, 148, 8 * tb, tera{fp64: 1.2, fp32: 75, tf32: 1125, half: 2250, fp8: 4500, fp4: 13500},
		sheet + "HGX B300, one of its eight GPUs"},
	{names{"GB300"}, 152, 8 * tb, tera{fp64: 1.3, fp32: 80, tf32: 1250, half: 2500, fp8: 5000, fp4: 15000},
		sheet + "GB300 NVL72, one of its 72 GPUs"},
	{names{"GB10"}, 48, 273 * gb, tera{fp4: 500}, sheet + "DGX Spark; it states fp4 alone"},
	{names{"RTX PRO 6000 Blackwell Workstation Edition"}, 188, 1792 * gb,
		tera{fp32: 126, tf32: 251.9, half: 503.8, fp8: 1007.6, fp4: 2015.2},
		"NVIDIA RTX Blackwell PRO GPU Architecture white paper, appendix"},
	{names{"RTX PRO 6000 Blackwell Server Edition"}, 188, 1597 * gb,
		tera{fp32: 120, tf32: 250, half: 500, fp8: 1000, fp4: 2000},
		sheet + "RTX PRO 6000 Blackwell Server Edition"},
	{names{"GeForce RTX 5070"}, 48, 672 * gb,
		tera{fp32: 30.9, tf32: 30.9, half: 61.7, half16: 123.5, fp8: 123.5, fp4: 493.9},
		rtxBlack},
	{names{"GeForce RTX 5070 Ti"}, 70, 896 * gb,
		tera{fp32: 43.9, tf32: 43.9, half: 87.9, half16: 175.8, fp8: 175.8, fp4: 703},
		rtxBlack},
	{names{"GeForce RTX 5080"}, 84, 960 * gb,
		tera{fp32: 56.3, tf32: 56.3, half: 112.6, half16: 225.1, fp8: 225.1, fp4: 900.4},
		rtxBlack},
	{names{"GeForce RTX 5090"}, 170, 1792 * gb,
		tera{fp32: 104.8, tf32: 104.8, half: 209.5, half16: 419, fp8: 419, fp4: 1676},
		rtxBlack},
}
