package analyze

import (
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report/doc"
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
		class := colourOf(t, name)
		if !strings.HasPrefix(class, "k-") {
			t.Errorf("%s has no colour of its own: %q", name, class)
		}
		if other := of[class]; other != "" && class != "k-unknown" && class != "k-comm" {
			t.Errorf("%s looks like %s", name, other)
		}
		of[class] = name
	}
}

// colourOf is the class of a bar's only part.
func colourOf(t *testing.T, name string) string {
	t.Helper()
	chart := doc.Chart{ID: "parts", Kind: "stacked",
		Series: []doc.Series{{Name: "all", Labels: []string{name}, Values: []float64{1}}}}
	var page strings.Builder
	if err := render.HTML(&page, doc.Document{chart}, ""); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`data-m="0\.0"[^>]* class="([^"]*)"`).FindStringSubmatch(page.String())
	if m == nil {
		t.Fatalf("%s is not drawn", name)
	}
	return m[1]
}
