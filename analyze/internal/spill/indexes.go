package attrib

import (
	"math"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// nodeList is a node for each of many API calls, or trace.None, which all are at first: of 16 bits each as long as the
// nodes are so few, which they are where ranges nest.
type nodeList struct {
	memory *spill.Arena
	narrow []uint16 // the node plus 1
	wide   []uint32 // likewise; nil as long as 16 bits do
}

func newNodeList(memory *spill.Arena, n int) nodeList {
	return nodeList{memory: memory, narrow: spill.Make[uint16](memory, n)}
}

func (l *nodeList) at(i int32) int32 {
	if l.wide != nil {
		return int32(l.wide[i]) - 1
	}
	return int32(l.narrow[i]) - 1
}

func (l *nodeList) set(i int, node int32) {
	if l.wide == nil && node >= math.MaxUint16 {
		l.wide = spill.Make[uint32](l.memory, len(l.narrow))
		for k, x := range l.narrow {
			l.wide[k] = uint32(x)
		}
		spill.Free(l.memory, l.narrow)
		l.narrow = nil
	}
	if l.wide != nil {
		l.wide[i] = uint32(node + 1)
	} else {
		l.narrow[i] = uint16(node + 1)
	}
}

func (l *nodeList) free() {
	spill.Free(l.memory, l.narrow)
	spill.Free(l.memory, l.wide)
	l.narrow, l.wide = nil, nil
}
