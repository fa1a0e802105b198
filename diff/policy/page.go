package policy

import _ "embed"

//go:embed policy.md
var page string

// Page says how to write a policy, as markdown: its keys with their defaults, and an example.
func Page() string { return page }
