// Package tracetest builds small synthetic Nsight Systems SQLite exports for tests, in the way that net/http/httptest
// builds servers: the shape of a real export, with content the test chose.
//
// A [Builder] collects processes, threads, API calls, GPU work, NVTX ranges and the metadata around them, and
// [Builder.Write] lays them out in the tables and columns of the schema generation asked for:
//
//	b := tracetest.New(tracetest.Schema("3.16.1"))
//	main := b.Process(100, "python").Thread(100, "main")
//	main.Range("step", 0, 50_000)
//	main.Launch("gemm", 1_000, 3_000, tracetest.Kernel{Start: 5_000, End: 25_000})
//	path := b.WriteTB(t)
//
// All times are absolute nanoseconds on the capture's clock, and every pair is (start, end), as in the tables; they may
// be negative. The same calls give the same bytes, except for a file with a write-ahead log (see [WAL]).
//
// The fluent methods on [Thread] keep correlation ids and threads consistent. The methods on Builder that take a struct
// ([Builder.Kernel], [Builder.API], ...) say everything explicitly, and each struct's Set field overrides single
// columns, so that any malformed row can be written. [Builder.Row] writes to any table at all.
//
// [Tiny], [TwoProcs], [Oldest], [GraphHidden], [Hostile], [Serving], [ServingGraphMode], [Base] and [Head] are recipes:
// ready-made traces whose comments give the numbers to expect. They take the same options as [New]. [Rewrite] writes an
// edited copy of any export, real or synthetic.
package tracetest
