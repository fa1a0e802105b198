package kit

import "github.com/nsys-llm/explain/analyze/internal/trace"

// Directions are the labels of copyKind, in the numbering of ENUM_CUDA_MEMCPY_OPER.
var Directions = [...]string{"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	"UVM_HtoD", "UVM_DtoH", "UVM_DtoD"}

// MemKinds are the labels of srcKind, dstKind and memKind, in the numbering of ENUM_CUDA_MEM_KIND.
var MemKinds = [...]string{"pageable", "pinned", "device", "array", "managed", "device_static", "managed_static",
	"unknown"}

// Numbers of Directions and MemKinds.
const (
	CopyHtoD, CopyDtoH, CopyDtoD      = 1, 2, 8
	MemPageable, MemPinned, MemDevice = 0, 1, 2
	MemArray, MemManaged, memUnknown  = 3, 4, 7
)

// Direction is the index of a copyKind in Directions.
func Direction(copyKind int) int {
	if copyKind < 0 || copyKind >= len(Directions) {
		return 0
	}
	return copyKind
}

// MemKind is the index of a kind of memory in MemKinds.
func MemKind(kind int) int {
	if kind < 0 || kind >= len(MemKinds) {
		return memUnknown
	}
	return kind
}

// CopySide is the kind of memory that determines how fast a copy can be: that of the host's side, else of the side that
// is not plain device memory.
func CopySide(c *trace.Copies, i int) int {
	src, dst := MemKind(c.SrcKind(i)), MemKind(c.DstKind(i))
	switch Directions[Direction(c.Kind(i))] {
	case "HtoD", "HtoA", "UVM_HtoD":
		return src
	case "DtoH", "AtoH", "UVM_DtoH":
		return dst
	}
	if src == MemDevice || dst == MemPageable {
		return dst
	}
	return src
}
