package gpu

import (
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Numbers of kit.Directions and kit.MemKinds that rules look at.
const (
	copyHtoD, copyDtoH, copyDtoD      = 1, 2, 8
	memPageable, memPinned            = 0, 1
	memDevice, memManaged, memUnknown = 2, 4, 7
)

// sameDevice reports whether a copy stays on one device.
func sameDevice(copyKind int) bool {
	switch kit.Directions[kit.Direction(copyKind)] {
	case "DtoD", "AtoA", "AtoD", "DtoA", "UVM_DtoD":
		return true
	}
	return false
}

// pageable reports whether a copy touches pageable host memory.
func pageable(c *trace.Copies, i int) bool {
	return c.SrcKind(i) == memPageable || c.DstKind(i) == memPageable
}
