// Package rules judges a comparison by a policy: which rule judges which number, its outcome, which waiver accepts it,
// and the verdict. It uses what was found before and measures nothing itself.
package rules
