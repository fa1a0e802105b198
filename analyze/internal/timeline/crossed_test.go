package timeline

import (
	"context"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Requests as start/end ranges overlap without end: request i is open from 10·i to 10·i+35. The chain of ended ones is
// dropped again and again, the stacks stay right, and no walk gets long.
func TestEndlessOverlap(t *testing.T) {
	const requests = 5000
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "main")
	for i := range int64(requests) {
		th.StartEnd("request", 10*i, 10*i+35)
		th.Call("cudaMalloc", 10*i+6, 10*i+7) // in requests i, i-1, i-2 (open to 10·i+15) and, to 10·i+5, no longer in i-3
	}
	x, err := trace.Open(context.Background(), b.WriteTB(t), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	c := NewContexts(x)
	if !c.tangled || c.Nodes() <= requests {
		t.Fatal("no chain was ever rebuilt")
	}
	for call := range x.API.Len() {
		start, end := x.API.Start(call), x.API.End(call)
		var got []int32
		steps := 0
		for n := c.from.At(call); n != trace.None; n = c.out[n] {
			if steps++; c.holds(n, start, end) {
				got = append(got, c.alone[n])
			}
		}
		want := min(call+1, 3)
		if len(got) != want || got[0] != int32(call) || got[want-1] != int32(call-want+1) {
			t.Fatalf("call %d is in ranges %v, want the last %d from %d down", call, got, want, call)
		}
		if steps > 2*minChain {
			t.Fatalf("call %d: a walk takes %d steps", call, steps)
		}
	}
}
