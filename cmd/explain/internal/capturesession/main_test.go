package capturesession_test

import (
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

func TestMain(m *testing.M) { explaintest.Main(m) }
