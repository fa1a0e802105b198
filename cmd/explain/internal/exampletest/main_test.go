package exampletest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestMain is also what the stand-in for nsys calls to make a copy of a trace a recording of its own.
func TestMain(m *testing.M) {
	if path := os.Getenv("E2E_SESSION"); path != "" {
		later, err := strconv.ParseInt(os.Getenv("E2E_SESSION_LATER"), 10, 64)
		if err == nil {
			err = explaintest.LaterSession(path, later*1e9)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	explaintest.Main(m)
}
