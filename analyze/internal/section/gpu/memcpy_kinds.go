package gpu

import "github.com/nsys-llm/explain/analyze/internal/trace"

// directions are the labels of copyKind, in the numbering of ENUM_CUDA_MEMCPY_OPER.
var directions = [...]string{"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	"UVM_HtoD", "UVM_DtoH", "UVM_DtoD"}

// memKinds are the labels of srcKind, dstKind and memKind, in the numbering of ENUM_CUDA_MEM_KIND.
var memKinds = [...]string{"pageable", "pinned", "device", "array", "managed", "device_static", "managed_static",
	"unknown"}

// Numbers of the above that rules look at.
const (
	copyHtoD, copyDtoH, copyDtoD      = 1, 2, 8
	memPageable, memPinned            = 0, 1
	memDevice, memManaged, memUnknown = 2, 4, 7
)

func direction(copyKind int) int {
	if copyKind < 0 || copyKind >= len(directions) {
		return 0
	}
	return copyKind
}

func memKind(kind int) int {
	if kind < 0 || kind >= len(memKinds) {
		return memUnknown
	}
	return kind
}

// copySide is the kind of memory that says how fast a copy can be: that of the host's side, else of the side that is
// not plain device memory.
func copySide(c *trace.Copies, i int) int {
	src, dst := memKind(c.SrcKind(i)), memKind(c.DstKind(i))
	switch directions[direction(c.Kind(i))] {
	case "HtoD", "HtoA", "UVM_HtoD":
		return src
	case "DtoH", "AtoH", "UVM_DtoH":
		return dst
	}
	if src == memDevice || dst == memPageable {
		return dst
	}
	return src
}

// sameDevice reports whether a copy stays on one device.
func sameDevice(copyKind int) bool {
	switch directions[direction(copyKind)] {
	case "DtoD", "AtoA", "AtoD", "DtoA", "UVM_DtoD":
		return true
	}
	return false
}

// pageable reports whether a copy touches pageable host memory.
func pageable(c *trace.Copies, i int) bool {
	return c.SrcKind(i) == memPageable || c.DstKind(i) == memPageable
}
