// Package rules holds a comparison against a policy: which rule judges which number, what came of it, which waiver
// accepts that, and the verdict. It decides by what was found before and measures nothing itself.
package rules
