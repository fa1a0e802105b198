package kernelname

import "testing"

var (
	sinkBytes  []byte
	sinkString string
	sinkBool   bool
)

func BenchmarkAppendRangeCanonical(b *testing.B) {
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		sinkBytes = AppendRangeCanonical(buf[:0], "aten::mm, seq = 45536, op_id = 991473")
	}
}

func BenchmarkRangeCanonicalMarker(b *testing.B) {
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		sinkBytes = AppendRangeCanonical(buf[:0], "execute_context_2(14721)_generation_3(3)")
	}
}

func BenchmarkParseMarker(b *testing.B) {
	for b.Loop() {
		_, sinkBool = ParseMarker("execute_context_2(14721)_generation_3(3)")
	}
}

func BenchmarkParseMarkerOfNone(b *testing.B) {
	for b.Loop() {
		_, sinkBool = ParseMarker("aten::mm, seq = 45536, op_id = 991473")
	}
}

const longName = "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 12)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)]>(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"

func BenchmarkClassify(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sinkString = Classify(longName).Family
	}
}

func BenchmarkCanonical(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sinkString = Canonical(longName)
	}
}
