package infer

import (
	_ "embed"
	"fmt"
	"strings"
)

// The pages, embedded so that a command can print them.
var (
	//go:embed one-capture.md
	oneCapture string
	//go:embed several-captures.md
	severalCaptures string
)

// Pages are the names of the pages.
func Pages() []string { return []string{"one-capture", "several-captures"} }

// Page is one page as markdown.
func Page(name string) (string, error) {
	switch name {
	case "one-capture":
		return oneCapture, nil
	case "several-captures":
		return severalCaptures, nil
	}
	return "", fmt.Errorf("no page %q; there are %s", name, strings.Join(Pages(), ", "))
}
