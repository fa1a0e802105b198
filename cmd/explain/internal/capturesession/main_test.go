package capturesession_test

import (
	"flag"
	"runtime"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

func TestMain(m *testing.M) { explaintest.Main(waiting{m}) }

// waiting is tests of captures, which wait for other programs most of their time: four times as many as usual run side
// by side.
type waiting struct{ *testing.M }

func (m waiting) Run() int {
	flag.Parse()
	if side := flag.Lookup("test.parallel"); side.Value.String() == side.DefValue {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return m.M.Run()
}
