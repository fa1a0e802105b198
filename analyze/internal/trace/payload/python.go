package payload

import (
	"encoding/binary"
	"math"
	"path"
)

// With --python-sampling nsys writes the Python stack of a thread as an NVTX mark in a domain of its own, whose payload
// holds it; with --trace=python-gil a range for the time in which a thread has the interpreter's lock, and one for that
// in which it waits for it. NVIDIA documents neither. The names are those of public analyses of such captures. The
// payload is laid out as in nsys' JSON export, behind the head that payloads have in SQLite: 64 bits of unknown
// meaning, the thread's state and the number of frames in 32 bits each, then by frame, the innermost first, the ids of
// the function's and of the file's name and the line, in 64 bits each, in little endian. That SQLite has the same bytes
// is inferred: no capture with such samples was at hand.
const (
	PythonDomain   = "Python Periodic Sampling"
	HoldingGIL     = "Holding GIL" // it is around whatever Python does, and says nothing about it
	pythonHead     = Head + 16
	pythonFrame    = 24
	maxPythonStack = 1 << 12
)

// PythonFrame is a frame by the ids of its names.
type PythonFrame struct{ Function, File, Line uint64 }

// Python is the stack of a payload, the innermost frame first; nil if it is not as expected.
func Python(b []byte) []PythonFrame {
	if len(b) < pythonHead {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(b[Head+12:]))
	if n > maxPythonStack || len(b) != pythonHead+n*pythonFrame {
		return nil
	}
	frames := make([]PythonFrame, n)
	for i := range frames {
		number := func(k int) uint64 { return binary.LittleEndian.Uint64(b[pythonHead+i*pythonFrame+8*k:]) }
		if frames[i] = (PythonFrame{number(0), number(1), number(2)}); frames[i].Line > math.MaxInt32 {
			return nil
		}
	}
	return frames
}

// ShortPath is a file with the folder it is in; nothing of nothing.
func ShortPath(file string) string {
	if file == "" {
		return ""
	}
	return path.Join(path.Base(path.Dir(file)), path.Base(file))
}

// OfPython is the payload of a stack.
func OfPython(frames []PythonFrame) []byte {
	b := make([]byte, pythonHead, pythonHead+len(frames)*pythonFrame)
	binary.LittleEndian.PutUint32(b[Head+12:], uint32(len(frames)))
	for _, f := range frames {
		for _, v := range []uint64{f.Function, f.File, f.Line} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}
