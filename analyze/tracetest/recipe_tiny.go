package tracetest

// us is a microsecond in nanoseconds.
const us = 1_000

// allReduce is NCCL's all-reduce kernel as it is named in traces of NCCL 2.2x.
const allReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"

// Tiny is one process on one GPU with a gap of every idle cause, in round numbers, so that expected values can be
// worked out by hand. All GPU times, in µs; the API call that asked for the work is in brackets:
//
//	gemm      100- 200 [  90-  95]    attention, step 1
//	softmax   200- 300 [ 100- 105]    attention, step 1
//	norm      300- 340 [ 110- 115]    mlp, step 1
//	idle      340- 365                host 20 (340-360), launch 5 (360-365)
//	gemm      365- 400 [ 360- 365]    step 1
//	idle      400- 460                sync 40 (cudaStreamSynchronize 366-440), host 10 (440-450), launch 5, dependency 5 (455-460)
//	softmax   460- 500 [ 450- 455]    step 1
//	idle      500- 530                dependency 30: launched long before
//	gemm      530- 600 [ 460- 465]    step 1
//	idle      600- 630                launch 30: the launch call itself took 590-630
//	softmax   630- 700 [ 590- 630]    step 2
//	idle      700- 750                unknown 50: the next kernel has no API row
//	norm      750- 800 [ none   ]     in no range
//	copy HtoD 780- 820 [ 760- 765]    stream 13, 4 MiB from pinned memory; 20 of 40 under the norm, 20 exposed
//	gemm      820- 900 [ 770- 775]    step 2
//	nccl      880- 950 [ 780- 785]    stream 21; 20 of 70 under the gemm, 50 exposed
//	softmax   950-1000 [ 790- 795]    step 2
//	copy DtoH 1000-1010 [800- 805]    1 KiB to pageable memory, exposed
//	memset    1010-1020 [806- 811]    exposed
//	idle      1020-1050               sync 10 (cudaStreamSynchronize 815-1030), host 10, launch 5 (1040-1045), dependency 5
//	gemm      1050-1090 [1040-1045]   step 2
//	norm      1090-1100 [1048-1053]   step 2
//
// The sums, in µs:
//
//	window 1000 = compute 685 + exposed communication 50 + exposed copy 40 + idle 225; busy 775; idle ratio 0.225
//	idle 225    = sync 50 + host 40 + launch 45 + dependency 40 + unknown 50
//	kernels     13, total 755: gemm 325 (5), softmax 260 (4), norm 100 (3), nccl 70 (1); alone they leave 265 idle
//	communication 70 in all; copies and memset 60 in all
//	launches    12 calls, 95; sync 2 calls, 289 (74 + 215)
//	NVTX        coverage 705/755; step 1 385 (145 of its own), attention 200, mlp 40, step 2 320
//	            wall time: step 1 80-470, attention 85-108, mlp 108-120, step 2 580-1060
func Tiny(opts ...Option) *Builder {
	b := New(opts...)
	b.GPU(GPU{})
	p := b.Process(100, "python")
	th := p.Thread(100, "python")
	kernel := func(name string, apiStart, apiEnd, start, end int64) {
		th.Launch(name, apiStart*us, apiEnd*us, Kernel{Start: start * us, End: end * us})
	}
	th.Range("step 1", 80*us, 470*us)
	th.Range("attention", 85*us, 108*us)
	kernel("gemm", 90, 95, 100, 200)
	kernel("softmax", 100, 105, 200, 300)
	th.Range("mlp", 108*us, 120*us)
	kernel("norm", 110, 115, 300, 340)
	kernel("gemm", 360, 365, 365, 400)
	th.StreamSynchronize(366*us, 440*us, 0, 7)
	kernel("softmax", 450, 455, 460, 500)
	kernel("gemm", 460, 465, 530, 600)

	th.Range("step 2", 580*us, 1060*us)
	kernel("softmax", 590, 630, 630, 700)
	b.Kernel(Kernel{Place: Place{Process: p, Correlation: 9999}, Name: "norm", Start: 750 * us, End: 800 * us})
	th.Memcpy(760*us, 765*us, Memcpy{
		Place: Place{Stream: 13}, Start: 780 * us, End: 820 * us, Bytes: 4 << 20, Kind: HtoD, Src: Pinned,
		Dst: DeviceMemory,
	})
	kernel("gemm", 770, 775, 820, 900)
	th.Launch(allReduce, 780*us, 785*us, Kernel{Place: Place{Stream: 21}, Start: 880 * us, End: 950 * us})
	kernel("softmax", 790, 795, 950, 1000)
	th.Memcpy(800*us, 805*us, Memcpy{Start: 1000 * us, End: 1010 * us, Bytes: 1 << 10, Kind: DtoH, Src: DeviceMemory,
		Dst: Pageable})
	th.Memset(806*us, 811*us, Memset{Start: 1010 * us, End: 1020 * us, Bytes: 4096})
	th.StreamSynchronize(815*us, 1030*us, 0, 7)
	kernel("gemm", 1040, 1045, 1050, 1090)
	kernel("norm", 1048, 1053, 1090, 1100)
	return b
}

// TwoProcs is two processes, on one GPU each, whose API calls have the same correlation ids 1 to 4. In µs:
//
//	pid 100, device 0: gemm 100-110, 110-120, 120-130, 130-140, launched at 10, 20, 30, 40 for 2 each
//	pid 200, device 1: softmax 102-107, 112-117, 122-127, 132-137, launched at 100, 110, 120, 130 for 2 each
//
// The common window is 100-140. Device 0 is busy for 40. Device 1 is busy for 20 and idle for 20 = launch 8 + host 9 +
// unknown 3 (nothing follows 137-140). Every launch of pid 100 lies in the range "rank 0", every one of pid 200 in
// "rank 1": "rank 0" has 40 of GPU time, "rank 1" 20. A join on the correlation id alone finds two calls for each
// kernel.
func TwoProcs(opts ...Option) *Builder {
	b := New(opts...)
	b.GPU(GPU{ID: 0})
	b.GPU(GPU{ID: 1})
	t0 := b.Process(100, "python").Thread(100, "python")
	t1 := b.Process(200, "python").Thread(200, "python")
	t0.Range("rank 0", 5*us, 50*us)
	t1.Range("rank 1", 95*us, 140*us)
	for i := range int64(4) {
		at := (10 + 10*i) * us
		t0.Launch("gemm", at, at+2*us, Kernel{Start: (100 + 10*i) * us, End: (110 + 10*i) * us})
		at = (100 + 10*i) * us
		t1.Launch("softmax", at, at+2*us, Kernel{Place: Place{Device: 1}, Start: at + 2*us, End: at + 7*us})
	}
	return b
}

// Oldest is [Tiny] in the oldest schema: no metadata, no PROCESSES, no ENUM tables, no mangledName. The numbers are
// Tiny's.
func Oldest(opts ...Option) *Builder {
	return Tiny(append([]Option{Schema(OldestSchema)}, opts...)...)
}

// GraphHidden is a compiled model whose CUDA graphs were traced as a whole, so that nearly all GPU time is in no
// kernel. pid 300 runs 10 steps on an A100, step i from t = 10000 + 1000·i, in µs:
//
//	fill 0-2, fill 2-4, multi_tensor_apply 4-10 (kernels), idle 10-20, graph 20-920 (GRAPH_TRACE), idle 920-1000
//
// All 40 launch calls (4 per step, 5 each, step i from 200·i) lie before the first kernel, and one
// cudaDeviceSynchronize from 2100 to 19930 waits for everything. So the window is 10000-19920, 9920 long; busy 9100, of
// which kernels 100 and graphs 9000; idle 820 = 10·10 + 9·80, all of it dependency. The graph was made 20182 before the
// capture began.
func GraphHidden(opts ...Option) *Builder {
	b := New(opts...)
	b.GPU(GPU{Name: "NVIDIA A100-SXM4-80GB", SMs: 108, Chip: "GA100", Compute: [2]int64{8, 0}})
	b.CaptureMeta("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph")
	th := b.Process(300, "python").Thread(300, "python")
	b.GraphEvent(GraphEvent{Thread: th, Name: "Graph Creation", At: -20182 * us, Graph: 4})
	b.GraphEvent(GraphEvent{Thread: th, Name: "GraphExec Creation", At: -20181 * us, Class: 94, Graph: 4, Exec: 5})
	kernels := []struct {
		name       string
		start, end int64
	}{{fill, 0, 2}, {fill, 2, 4}, {foreach, 4, 10}}
	for i := range int64(10) {
		t := 10_000 + 1_000*i
		for j, k := range kernels {
			at := (200*i + 10*int64(j)) * us
			th.Launch(k.name, at, at+5*us, Kernel{Start: (t + k.start) * us, End: (t + k.end) * us,
				Grid: [3]int64{1024, 1, 1}})
		}
		at := (200*i + 30) * us
		th.GraphLaunchWhole(at, at+5*us, GraphTrace{Start: (t + 20) * us, End: (t + 920) * us, Graph: 4, Exec: 5})
	}
	th.DeviceSynchronize(2100*us, 19930*us, 0)
	return b
}

const foreach = "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)2>, at::native::<unnamed>::UnaryOpFunctor<long, (int)2, (int)1, (int)1>>(T1, T2)"
