package report

import "fmt"

// Bounds of what is read from files that may come from anybody. What explain writes is far below them.
const (
	maxDepth = 32       // of objects and lists
	maxText  = 64 << 10 // bytes of one text as it is written; names of kernels reach some ten thousand
)

// bounded reports JSON that is nested deeper or has longer texts than any file of explain. It looks at brackets and
// quotes alone: whether the text is JSON is for the decoder to say.
func bounded(b []byte) error {
	depth, start := 0, -1
	for i := 0; i < len(b); i++ {
		if start >= 0 {
			switch b[i] {
			case '\\':
				i++
			case '"':
				if i-start > maxText {
					return fmt.Errorf("a text of %d bytes, at most %d are read", i-start, maxText)
				}
				start = -1
			}
			continue
		}
		switch b[i] {
		case '"':
			start = i + 1
		case '[', '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested more than %d deep", maxDepth)
			}
		case ']', '}':
			depth--
		}
	}
	return nil
}
