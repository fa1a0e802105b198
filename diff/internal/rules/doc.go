// Package rules judges a comparison by a policy: which rule judges which number, its outcome, which waiver accepts
// that, and the verdict. It decides by what was found before and measures nothing itself.
package rules
