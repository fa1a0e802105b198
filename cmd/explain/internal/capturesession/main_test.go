package capturesession_test

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// Captures wait for other programs most of their time: four times as many as usual run side by side.
func TestMain(m *testing.M) {
	flag.Parse()
	if side := flag.Lookup("test.parallel"); side.Value.String() == side.DefValue {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	explaintest.Main(m)
}
