// Package pattern is regular expressions that are compiled when they are first used: the program has two hundred, and a
// run of it needs few.
package pattern

import (
	"regexp"
	"sync"
)

// New is regexp.MustCompile, at the first call of what it returns.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
