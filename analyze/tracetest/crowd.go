package tracetest

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Crowd gives a capture, for benchmarks, what one has with --trace=osrt, --cpuctxsw and --sample: so many calls of the
// operating system, switches of the scheduler and frames of samples, about evenly along the CUDA calls that are there,
// on their threads. Calls lie between CUDA calls, within them, across their start and in each other; a thread that
// leaves a CPU makes room for a worker, and comes back to the same or to another; samples are of some hundred stacks.
// What the capture has of these tables is replaced.
func Crowd(calls, switches, frames int) Edit {
	return Edit{"crowd", func(e *editor) error {
		c := &crowd{r: rand.New(rand.NewPCG(21, 5)), last: map[int64]int64{}, cpu: map[int64]int64{}}
		for _, name := range crowdCalls {
			id, err := e.intern(name)
			if err != nil {
				return err
			}
			c.names = append(c.names, id)
		}
		if err := c.makeStacks(e); err != nil {
			return err
		}
		if err := c.along(e, calls, switches, frames); err != nil {
			return err
		}
		return c.write(e)
	}}
}

// crowdCalls are what threads call, the more often the more often they stand here.
var crowdCalls = strings.Fields("pthread_cond_signal pthread_cond_signal pthread_cond_signal pthread_mutex_lock " +
	"pthread_mutex_lock ioctl ioctl read write poll sem_wait futex mmap munmap open64 fgets sched_yield usleep")

// Of the time between two CUDA calls and within one, at least so much has to be there to put something into it, in ns.
const crowdRoom = 64

type crowd struct {
	r      *rand.Rand
	names  []int64
	stacks [][][2]int64    // symbol and module
	last   map[int64]int64 // by thread: end of its CUDA calls so far
	cpu    map[int64]int64 // by thread: where it is

	calls, switches, samples, frames [][]any
}

// makeStacks makes 400 stacks of 8 to 20 frames: a way down through the interpreter, which stacks share, and its end.
func (c *crowd) makeStacks(e *editor) error {
	function := func(format string, n int, module string) (f [2]int64, err error) {
		if f[0], err = e.intern(fmt.Sprintf(format, n)); err != nil {
			return f, err
		}
		f[1], err = e.intern(module)
		return f, err
	}
	for range 400 {
		var stack [][2]int64
		inner := c.r.IntN(300)
		for depth := range 8 + c.r.IntN(13) {
			format, n, module := "_PyEval_EvalFrame_%d", depth, "/usr/bin/python3"
			switch {
			case depth < 3:
				format, n, module = "at::native::op_%d", inner+100*depth, "/opt/torch/libtorch_cpu.so"
			case depth == 3:
				format, n, module = "0x7f%08x", inner*64, "[vdso]"
			}
			f, err := function(format, n, module)
			if err != nil {
				return err
			}
			stack = append(stack, f)
		}
		c.stacks = append(c.stacks, stack)
	}
	return nil
}

// along goes through the CUDA calls and puts what is due beside each.
func (c *crowd) along(e *editor, calls, switches, frames int) error {
	const table = "CUPTI_ACTIVITY_KIND_RUNTIME"
	var all int
	if err := e.tx.QueryRow("SELECT count(*) FROM " + table).Scan(&all); err != nil {
		return err
	}
	rows, err := e.tx.Query("SELECT start, end, globalTid FROM " + table + " ORDER BY start, rowid")
	if err != nil {
		return err
	}
	defer rows.Close()
	for done := 1; rows.Next(); done++ {
		var start, end, thread int64
		if err := rows.Scan(&start, &end, &thread); err != nil {
			return err
		}
		before, known := c.last[thread]
		c.last[thread] = max(before, end)
		if !known || start-before < crowdRoom {
			continue
		}
		for due := calls*done/all - len(c.calls); due > 0; due-- {
			c.call(thread, before, start, end)
		}
		for len(c.switches) < switches*done/all {
			c.preempt(thread, before+c.r.Int64N((start-before)/2), start)
		}
		if len(c.frames) < frames*done/all {
			c.sample(thread, before+c.r.Int64N(end-before))
		}
	}
	return rows.Err()
}

// call adds one or two calls between before, the end of a thread's last CUDA call, and end, that of the next.
func (c *crowd) call(thread, before, start, end int64) {
	from, until := before, start
	switch kind := c.r.IntN(10); {
	case kind < 3 && end-start >= crowdRoom: // within the CUDA call
		from, until = start, end
	case kind == 3: // across its start
		until = end
	}
	room := until - from
	from += c.r.Int64N(room - room/4)
	until = min(until, from+1+c.r.Int64N(1+room/4))
	c.osrt(thread, from, until, 0)
	if until-from >= crowdRoom && c.r.IntN(10) == 0 {
		c.osrt(thread, from+5, until-5, 1)
	}
}

func (c *crowd) osrt(thread, from, until int64, level int) {
	c.calls = append(c.calls, []any{from, until, 27, thread, c.names[c.r.IntN(len(c.names))], 0, level, 0, 0})
}

// preempt takes a thread off its CPU, which a worker of its process has until shortly before the thread comes back.
func (c *crowd) preempt(thread, from, until int64) {
	cpu, worker := c.cpu[thread], thread+5000+c.r.Int64N(8)
	back := from + (until-from)/2
	c.cpu[thread] = cpu
	if c.r.IntN(4) == 0 {
		c.cpu[thread] = c.r.Int64N(32)
	}
	c.switches = append(c.switches, []any{from, cpu, 0, thread}, []any{from + 3, cpu, 1, worker},
		[]any{back - 3, cpu, 0, worker}, []any{back, c.cpu[thread], 1, thread})
}

func (c *crowd) sample(thread, at int64) {
	id := int64(len(c.samples) + 1)
	c.samples = append(c.samples, []any{at, c.cpu[thread], 1, thread, 1})
	for depth, f := range c.stacks[c.r.IntN(len(c.stacks))] {
		c.frames = append(c.frames, []any{id, f[0], f[1], 0, depth})
	}
}

// write makes the tables, rows in order of start, as nsys exports them.
func (c *crowd) write(e *editor) error {
	newest, err := parseVersion(products[len(products)-1].schema)
	if err != nil {
		return err
	}
	defs, err := schemaTables(newest)
	if err != nil {
		return err
	}
	byTime := func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) }
	for _, rows := range [][][]any{c.calls, c.switches} {
		slices.SortStableFunc(rows, byTime)
	}
	for _, t := range []struct {
		name, columns string
		rows          [][]any
	}{
		{"OSRT_API", "start, end, eventClass, globalTid, nameId, returnValue, nestingLevel, callchainId, argumentsId",
			c.calls},
		{"SCHED_EVENTS", "start, cpu, isSchedIn, globalTid", c.switches},
		{"COMPOSITE_EVENTS", "start, cpu, threadState, globalTid, cpuCycles", c.samples},
		{"SAMPLING_CALLCHAINS", "id, symbol, module, kernelMode, stackDepth", c.frames},
	} {
		if err := DropTable(t.name).apply(e); err != nil {
			return err
		}
		def := defs[slices.IndexFunc(defs, func(d tableDef) bool { return d.name == t.name })]
		if _, err := e.tx.Exec(def.create()); err != nil {
			return err
		}
		stmt, err := e.tx.Prepare(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", t.name, t.columns,
			strings.Repeat("?, ", strings.Count(t.columns, ","))+"?"))
		if err != nil {
			return err
		}
		if err := insertAll(stmt, t.rows); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return e.load()
}

func insertAll(stmt *sql.Stmt, rows [][]any) error {
	defer stmt.Close()
	for _, r := range rows {
		if _, err := stmt.Exec(r...); err != nil {
			return err
		}
	}
	return nil
}
