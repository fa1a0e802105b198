package diff

import "github.com/nsys-llm/explain/diff/policy"

// PolicyPage returns the page on policies, as markdown.
func PolicyPage() string { return policy.Page() }
