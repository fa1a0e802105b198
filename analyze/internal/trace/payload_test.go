package trace

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// withPayload makes an export with a schema of one number of 64 bits, and a range for each value of it, in that order.
func withPayload(field string, values []uint64) *tracetest.Builder {
	const domain, schema = 1, 9
	b := tracetest.New(tracetest.Schema("3.25.0"))
	b.Row("NVTX_PAYLOAD_SCHEMA_ENTRIES", tracetest.Row{"domainId": tracetest.Int(domain),
		"schemaId": tracetest.Int(schema), "idx": tracetest.Int(0), "type": tracetest.Int(22), "name": tracetest.Text(field)})
	th := b.Process(100, "python").Thread(100, "")
	th.Launch("gemm", 10, 20, tracetest.Kernel{Start: 30, End: 40})
	for _, v := range values {
		body := make([]byte, payload.Head+8)
		binary.LittleEndian.PutUint32(body[payload.Schema:], schema)
		binary.LittleEndian.PutUint64(body[payload.Head:], v)
		b.NVTX(tracetest.NVTX{Thread: th, Type: tracetest.PushPop, Start: 50, End: 60, Text: "ncclAllReduce",
			Set: tracetest.Row{"domainId": tracetest.Int(domain), "binaryData": tracetest.Blob(body)}})
	}
	return b
}

// Rows are read by several goroutines, and calls of one time keep the order of their rows.
func TestPayloadsInTheOrderOfRows(t *testing.T) {
	values := make([]uint64, 40_000) // of some hundred bytes each: several stretches of the file
	for i := range values {
		values[i] = uint64(i)
	}
	tr, err := Open(context.Background(), withPayload(payload.MessageSize, values).WriteTB(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if len(tr.NCCL) != len(values) || tr.Ranges.Len() != len(values) {
		t.Fatalf("%d calls and %d ranges of %d rows", len(tr.NCCL), tr.Ranges.Len(), len(values))
	}
	for i, c := range tr.NCCL {
		if c.Bytes != int64(i) || c.Start != 50 || c.End != 60 || c.Rank != -1 || c.World != -1 || c.Comm != 0 {
			t.Fatalf("call %d: %+v", i, c)
		}
	}
}

// Payloads of others are none of NCCL's, nor is a message larger than any.
func TestPayloadsOfOthers(t *testing.T) {
	for field, values := range map[string][]uint64{
		"tokens": {1, 2}, "Rank": {3}, payload.MessageSize: {payload.MaxMessage + 1},
	} {
		tr, err := Open(context.Background(), withPayload(field, values).WriteTB(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(tr.NCCL) != 0 || tr.Ranges.Len() != len(values) {
			t.Errorf("%s: calls %+v, %d ranges", field, tr.NCCL, tr.Ranges.Len())
		}
		tr.Close()
	}
}
