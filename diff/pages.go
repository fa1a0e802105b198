package diff

import (
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/policy"
)

// policyPage is the name of the page on policies.
const policyPage = "policy"

// Pages are the names of the pages on comparisons: one-capture, several-captures, policy.
func Pages() []string { return append(infer.Pages(), policyPage) }

// Page is one page as markdown: how a comparison decides what is real and what is noise, with formulae and references,
// or how to write a policy.
func Page(name string) (string, error) {
	if name == policyPage {
		return policy.Page(), nil
	}
	return infer.Page(name)
}
