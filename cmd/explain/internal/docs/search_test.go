package docs_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
)

// TestMetricsAreFoundByTheWordsOfUsers: what people ask for is found, although no id is made of these words.
func TestMetricsAreFoundByTheWordsOfUsers(t *testing.T) {
	for words, want := range map[string]string{"step time": "unit.time", "tokens per second": "unit.token_rate"} {
		if got := docs.SearchMetrics(words); !slices.Contains(got, want) {
			t.Errorf("%s: %v, without %s", words, got, want)
		}
	}
}
