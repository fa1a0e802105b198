package analyze

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// TestEveryCategoryHasAColour: a category, a class or a cause looks the same on every page, and like no other.
func TestEveryCategoryHasAColour(t *testing.T) {
	names := []string{"compute", "exposed communication", "exposed copy", "idle"}
	for _, c := range kernelname.Categories {
		names = append(names, string(c))
	}
	names = append(names, timeline.CauseNames[:]...)
	of := map[string]string{}
	for _, name := range names {
		class, ok := render.Colour(name)
		if !ok {
			t.Errorf("%s has no colour", name)
		}
		if other := of[class]; other != "" && class != "k-unknown" && class != "k-comm" {
			t.Errorf("%s looks like %s", name, other)
		}
		of[class] = name
	}
}
