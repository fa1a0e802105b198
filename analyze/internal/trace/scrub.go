package trace

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace/kineto"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// kept are the columns that a scrubbed export has, by what the table is to the analyzer: numbers, and names of kernels,
// calls, ranges, processes, threads and GPUs. What is not listed is not copied.
var kept = map[Role][]string{
	RoleKernel: slices.Concat(keptWork, []string{"demangledName", "shortName", "mangledName", "name", "graphNodeId",
		"graphId", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
		"registersPerThread", "staticSharedMemory", "dynamicSharedMemory"}),
	RoleAPI: {"start", "end", "eventClass", "globalTid", "global_tid", "globalPid", "pid", "processId",
		"correlationId", "correlation_id", "nameId", "name", "returnValue"},
	RoleNVTX: {"start", "end", "eventType", "rangeId", "text", "textId", "globalTid", "global_tid",
		"endGlobalTid", "domainId"},
	RoleMemcpy:    slices.Concat(keptWork, []string{"bytes", "copyKind", "srcKind", "dstKind"}),
	RoleMemset:    slices.Concat(keptWork, []string{"bytes", "memKind"}),
	RoleGraph:     slices.Concat(keptWork, []string{"graphId", "graphExecId"}),
	RoleGraphMade: {"start", "graphExecId"},
	RoleHostFunc:  keptWork,
	RoleHostCall:  {"globalTid", "correlationId", "nameId"},
	RoleSync:      slices.Concat(keptWork, []string{"eventId", "eventSyncId"}),
	RoleEvent:     slices.Concat(keptWork, []string{"eventId", "eventSyncId"}),
	RoleOverhead:  {"start", "end", "globalTid", "nameId"},
	RoleAlloc: {"start", "globalPid", "deviceId", "contextId", "address", "bytes", "memKind", "memoryOperationType",
		"localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize"},
	RoleOS:          {"start", "end", "globalTid", "nameId", "callchainId"},
	RoleOSStack:     keptFrame,
	RoleSched:       {"start", "cpu", "isSchedIn", "globalTid"},
	RoleSample:      {"id", "start", "cpu", "globalTid"},
	RoleSampleStack: keptFrame,
	RoleCounter:     {"timestamp", "typeId", "metricId", "value"},
	RoleCounters:    {"typeId", "metricId", "metricName"},
	RoleDiagnostics: {"severity", "text"},
	RoleProcesses:   {"globalPid", "pid", "name"},
	RoleThreads:     {"nameId", "globalTid"},
	RoleGPU: {"id", "deviceId", "cuDevice", "name", "chipName", "smCount", "numMultiprocessors", "totalMemory",
		"globalMemorySize", "memoryBandwidth",
		"globalMemoryBandwidth", "clockRate", "coreClockRate", "computeMajor", "computeCapabilityMajor", "computeMinor",
		"computeCapabilityMinor", "uuid"},
	RoleDevices: {"gpuId", "cudaId", "pid"},
	RoleSystem:  {"name", "value"},
	RoleExport:  {"name", "value"},
	RoleCapture: {"name", "value"},
	RoleDetails: {"startTime", "stopTime"},
	RoleSession: {"utcEpochNs"},

	RoleMPI: mpiKept, RoleMPICollective: mpiKept, RoleMPIP2P: mpiKept, RoleMPIWait: mpiKept,
	RoleMPIRanks: {"globalPid", "rank"}, RoleMPIComm: mpiCommKept,
	RoleStrings: {"id", "value"},
}

var keptWork = []string{"start", "end", "deviceId", "contextId", "streamId", "correlationId", "correlation_id",
	"globalPid", "pid", "processId"}

var keptFrame = []string{"id", "symbol", "module", "stackDepth"}

// referring are the columns that may hold the id of a string.
var referring = []string{"demangledName", "shortName", "mangledName", "name", "nameId", "textId", "chipName", "symbol",
	"module"}

// keptKeys are the metadata that loadMeta reads.
var keptKeys = metaKeys(&Meta{})

// Scrubbed says what Scrub wrote and what it left behind, and how many different names of ranges and threads that are
// shown look like what.
type Scrubbed struct {
	Tables int
	Rows   int64
	Looks  map[secret.Kind]int

	LeftTables  []string            // without a column that is kept, by name
	LeftColumns map[string][]string // of tables that were copied, by table
	LeftRows    map[string]int64    // of tables that were copied: metadata, and strings that nothing refers to; of a profile, "events"
	Redacted    int64               // texts in which something looked like a token
}

// Shown says how names are written that people choose; nil: as they are.
type Shown struct {
	Personal func(name string) string // of ranges and threads
	Work     func(name string) string // of kernels, host functions and the functions of call chains
}

// Scrub writes to out what explain reads of the capture in path and nothing else: an export that analyses to the same
// numbers, without what payloads and events of plugins say. Names lose what looks like a token, and are written as
// shown says. out must not exist; if there is an error, what is there is no capture.
func Scrub(ctx context.Context, path, out string, shown Shown, opt FileOptions) (done Scrubbed, err error) {
	in := source.NewInput(ctx, path, opt)
	defer in.Cleanup()
	if err := in.Resolve(); err != nil {
		return done, err
	}
	if in.File.Kind == source.PyTorch {
		return scrubProfile(in, out, shown)
	}
	src, err := in.Open()
	if err != nil {
		return done, err
	}
	defer src.Close()
	all, err := src.Tables()
	if err != nil {
		return done, in.Damaged(err)
	}
	scan := &scanner{ctx: ctx, src: src, opt: &Options{}, tables: probe(all), maxRows: max(in.Size, 1)}
	s := &scrubber{scanner: scan, strings: map[int64]use{}, shown: shown,
		naming: map[int64]bool{}, waits: map[int64]bool{}, kinds: map[string]secret.Kind{}}
	if ok, _ := isNsys(all, s.tables); !ok {
		return done, in.Fail("is not an Nsight Systems export", "name a .sqlite file that nsys export wrote", nil)
	}
	s.done.LeftColumns, s.done.LeftRows = map[string][]string{}, map[string]int64{}
	if err := s.write(out); err != nil {
		w, ofOut := errors.AsType[*writeError](err)
		switch {
		case ctx.Err() != nil: // database/sql rolls back by itself then, and says that instead
			return done, ctx.Err()
		case ofOut:
			return done, w.error
		}
		return done, in.Damaged(err)
	}
	for _, t := range all {
		if !slices.Contains(s.copied, t.Name) {
			s.done.LeftTables = append(s.done.LeftTables, t.Name)
		}
	}
	slices.Sort(s.done.LeftTables)
	s.done.Looks = s.looks()
	return s.done, nil
}

// scrubProfile writes a copy of a trace of the PyTorch profiler.
func scrubProfile(in *source.Input, out string, shown Shown) (done Scrubbed, err error) {
	rd, err := in.JSON()
	if err != nil {
		return done, err
	}
	defer rd.Close()
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return done, err
	}
	defer f.Close()
	s := &scrubber{shown: shown, kinds: map[string]secret.Kind{}}
	program := func(name string) string { return s.redact(baseName(name)) }
	names := kineto.Names{Kernel: s.work, Work: s.redact, Program: program, Personal: s.personal, Device: safe}
	left := int64(0)
	if s.done.Rows, left, err = kineto.Scrub(rd, f, names); err != nil {
		if errors.Is(err, kineto.ErrForeign) {
			err = notProfile(in)
		}
		return done, err
	}
	if err := f.Close(); err != nil {
		return done, err
	}
	s.done.Tables, s.done.Looks = 1, s.looks()
	if left > 0 {
		s.done.LeftRows = map[string]int64{"events": left}
	}
	return s.done, nil
}

// writeError is about the file that is written rather than the one that is read.
type writeError struct{ error }

type scrubber struct {
	*scanner
	tx      *sql.Tx
	strings map[int64]use // ids that something kept refers to
	done    Scrubbed
	copied  []string // tables
	shown   Shown
	// Threads are named where their blocking calls are listed and beside the step that they launch, and nowhere else.
	naming map[int64]bool         // strings that are names of calls that block or launch
	waits  map[int64]bool         // global ids of threads that make them
	kinds  map[string]secret.Kind // names of ranges and threads as they are written, without counters
	key    []byte
}

// use says what a string is the name of.
type use byte

const (
	useName    use = 1 << iota // of a call, a GPU
	useWork                    // of a kernel, a function
	useRange                   // of a range or a thread, which people write
	useProgram                 // of a program, with its path
)

// namingCalls finds the strings that are names of calls whose threads a report names: of those that block or launch.
func (s *scrubber) namingCalls() error {
	return s.scanRole(RoleStrings, []string{"id", "value"}, func(row []cell) error {
		if id, ok := row[0].Whole(); ok && namingCall(textOf(&row[1])) {
			s.naming[id] = true
		}
		return nil
	})
}

func namingCall(name string) bool {
	if !strings.HasPrefix(name, "cu") {
		return false
	}
	c := classifyAPI(name)
	return c.Blocking() || c.OldSync || c.Launch
}

// looks counts the names by what they look like.
func (s *scrubber) looks() map[secret.Kind]int {
	count := map[secret.Kind]int{}
	for _, k := range s.kinds {
		if k != secret.None {
			count[k]++
		}
	}
	return count
}

// redact replaces what looks like a token, and counts the texts that had one.
func (s *scrubber) redact(text string) string {
	clean := secret.Tokens(text)
	if clean != text {
		s.done.Redacted++
	}
	return clean
}

// personal is the name of a range or thread as it is written.
func (s *scrubber) personal(name string) string {
	name = s.redact(name)
	if s.shown.Personal != nil {
		name = s.shown.Personal(name)
	}
	s.key = kernelname.AppendRangeCanonical(s.key[:0], name)
	if _, seen := s.kinds[string(s.key)]; !seen && len(s.kinds) < 1<<20 {
		s.kinds[string(s.key)] = secret.Of(name)
	}
	return name
}

// work is the name of a kernel or a function as it is written.
func (s *scrubber) work(name string) string {
	name = s.redact(name)
	if s.shown.Work != nil {
		name = s.shown.Work(name)
	}
	return name
}

func (s *scrubber) write(name string) error {
	abs, err := filepath.Abs(name)
	if err != nil {
		return &writeError{err}
	}
	// It is thrown away unless it is whole
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs),
		RawQuery: "_pragma=journal_mode(off)&_pragma=synchronous(off)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return &writeError{err}
	}
	defer db.Close()
	if s.tx, err = db.BeginTx(s.ctx, nil); err != nil {
		return &writeError{err}
	}
	defer s.tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	if err := s.namingCalls(); err != nil {
		return err
	}
	for _, spec := range slices.Concat(roles[1:], roles[:1]) { // strings last, when it is known which are needed
		if t, ok := s.tables[spec.role]; ok {
			if err := s.copy(spec.role, t, kept[spec.role]); err != nil {
				return err
			}
		}
	}
	if err := cmp.Or(s.tx.Commit(), db.Close()); err != nil {
		return &writeError{err}
	}
	return nil
}

// copy writes the columns of a table that may be kept, under the names that they have.
func (s *scrubber) copy(role Role, t source.Table, columns []string) error {
	var names, quoted, marks []string
	for _, c := range columns {
		if has := t.Column(c); has != "" {
			names, quoted, marks = append(names, has), append(quoted, source.Quote(has)), append(marks, "?")
		}
	}
	if len(names) == 0 { // generic events, which may hold any text
		return nil
	}
	if t.View { // one without end is found sooner if nothing is written
		if err := s.scan(t, names[:1], func([]cell) error { return nil }); err != nil {
			return err
		}
	}
	list := strings.Join(quoted, ", ")
	if _, err := s.tx.ExecContext(s.ctx, "create table "+source.Quote(t.Name)+" ("+list+")"); err != nil {
		return &writeError{err}
	}
	insert, err := s.tx.PrepareContext(s.ctx,
		"insert into "+source.Quote(t.Name)+" ("+list+") values ("+strings.Join(marks, ", ")+")")
	if err != nil {
		return &writeError{err}
	}
	defer insert.Close()
	s.done.Tables++
	for _, c := range t.Columns {
		if !slices.Contains(names, c) {
			s.done.LeftColumns[t.Name] = append(s.done.LeftColumns[t.Name], c)
		}
	}
	s.copied = append(s.copied, t.Name)
	values := make([]any, len(names))
	return s.scan(t, names, func(row []cell) error {
		if !s.keeps(role, names, row) {
			s.done.LeftRows[t.Name]++
			return nil
		}
		for i := range row {
			values[i] = s.value(role, names[i], row, i)
		}
		s.done.Rows++
		if _, err := insert.ExecContext(s.ctx, values...); err != nil {
			return &writeError{err}
		}
		return nil
	})
}
