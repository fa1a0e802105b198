package explaintest

import (
	"bytes"
	"fmt"
)

// TorchProfile is a trace of torch.profiler: steps of 20 kernels a 50 µs, launched 10 µs apart; every fifth is of attention
// and takes slower times as long.
func TorchProfile(steps int, slower float64) []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","numSms":132}],"traceEvents":[`)
	event := func(category, name string, pid int, at, length float64, args string) {
		fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":7,"ts":%.3f,"dur":%.3f,"args":{%s}},`, category, name, pid, at, length, args)
	}
	gpu, correlation := 0.0, 0
	for s := range steps {
		host := max(gpu, 1000)
		gpu = host + 30
		for k := range 20 {
			correlation++
			name, length := fmt.Sprintf("gemm_%d", k%4), 50.0
			if k%5 == 0 {
				name, length = "flash_fwd_kernel", 50*slower
			}
			length += float64((s*7+k*3)%5) * 0.01 // no two steps are equal to the nanosecond
			event("cuda_runtime", "cudaLaunchKernel", 77, host+float64(k)*10, 5, fmt.Sprintf(`"correlation":%d`, correlation))
			event("kernel", name, 0, gpu, length, fmt.Sprintf(`"device":0,"context":1,"stream":7,"correlation":%d,"grid":[132,1,1],"block":[128,1,1]`, correlation))
			gpu += length + 1
		}
		event("user_annotation", fmt.Sprintf("ProfilerStep#%d", s), 77, host-1, 230, "")
	}
	fmt.Fprint(&b, `{"name":"process_name","ph":"M","pid":77,"tid":0,"args":{"name":"python"}}],"displayTimeUnit":"ms"}`)
	return b.Bytes()
}
