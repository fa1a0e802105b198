package serverlog

import (
	"bytes"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Class of an error, by its text.
type Class int

// Classes of errors, the most specific first: an event that fits several gets the first.
const (
	OutOfMemory Class = iota
	NoKVCache
	CUDAError
	CommError
	EngineDead
	ProcessDied
	Timeout
	ModelError
	OtherError
	Classes
)

// ClassNames are the labels of the classes.
var ClassNames = [Classes]string{"out_of_memory", "kv_cache_too_small", "cuda", "communication", "engine_dead",
	"process_died", "timeout", "model_load", "other"}

// signs are the texts that identify the classes, searched for in the records of an error.
var signs = []struct {
	class Class
	text  string
}{
	{OutOfMemory, "OutOfMemoryError"}, {OutOfMemory, "CUDA out of memory"}, {OutOfMemory, "CUDA error: out of memory"},
	{OutOfMemory, "HIP out of memory"}, {OutOfMemory, "CUBLAS_STATUS_ALLOC_FAILED"},
	{OutOfMemory, "Out of memory. Try"},
	{NoKVCache, "No available memory for the cache blocks"},
	{NoKVCache, "larger than the maximum number of tokens that can be stored in KV cache"},
	{NoKVCache, "larger than the available KV cache memory"},
	{NoKVCache, "Not enough memory. Please try to increase --mem-fraction-static"},
	{OutOfMemory, "Free memory on device"},
	{CUDAError, "CUDA error"}, {CUDAError, "CUBLAS_STATUS_"}, {CUDAError, "cudaError"},
	{CUDAError, "illegal memory access"}, {CUDAError, "device-side assert"},
	{CommError, "NCCL error"}, {CommError, "ncclUnhandled"}, {CommError, "ncclSystemError"},
	{CommError, "ncclRemoteError"}, {CommError, "ProcessGroupNCCL"}, {CommError, "DistBackendError"},
	{CommError, "DistStoreError"},
	{EngineDead, "EngineDeadError"}, {EngineDead, "Engine core proc"}, {EngineDead, "EngineCore encountered"},
	{EngineDead, "EngineCore failed"}, {EngineDead, "Engine core initialization failed"},
	{EngineDead, "Engine background task failed"},
	{EngineDead, "AsyncEngineDeadError"}, {EngineDead, "Engine loop has died"}, {EngineDead, "MQEngineDeadError"},
	{ProcessDied, "died unexpectedly"}, {ProcessDied, "crashed with exit code"},
	{ProcessDied, "Scheduler hit an exception"}, {ProcessDied, "Worker proc"},
	{ProcessDied, "DetokenizerManager hit an exception"}, {ProcessDied, "Segmentation fault"},
	{ProcessDied, "exitcode: -"},
	{Timeout, "TimeoutError"}, {Timeout, "timed out"}, {Timeout, "Watchdog timeout"}, {Timeout, "watchdog timeout"},
	{ModelError, "is not a valid model identifier"}, {ModelError, "SafetensorError"},
	{ModelError, "does not appear to have a file named"}, {ModelError, "Can't load the configuration"},
}

// classify is the class of a record that is part of an error.
func classify(b []byte) Class {
	b = b[:min(len(b), 4096)]
	for _, s := range signs {
		if bytes.Contains(b, []byte(s.text)) {
			return s.class
		}
	}
	return OtherError
}

// alarms are texts that make a record without a level an error.
var alarms = []string{"OutOfMemoryError: ", "Traceback (most recent call last):", "crashed with exit code",
	"Scheduler hit an exception"}

// alarmReach is how far into a record an alarm may start. Text of clients stands behind it.
const alarmReach = 96

func alarming(b []byte) bool {
	if hasPrefix(b, "Receive") || hasPrefix(b, "Finish") { // requests as SGLang logs them
		return false
	}
	b = b[:min(len(b), alarmReach)]
	return slices.ContainsFunc(alarms, func(a string) bool { return bytes.Contains(b, []byte(a)) })
}

// continues reports whether a line without a header belongs to the error before it: a line of a traceback, or the name
// of the exception that ends one.
func continues(b []byte) bool { return len(b) == 0 || continued().Match(b) }

var continued = pattern.New(`^(?:[ \t]|Traceback \(most|During handling of|The above exception|` +
	`[^: ]*(?:Error|Exception|Interrupt|Exit|Timeout)(?:[: ]|$))`)

// Events count errors. One event is a run of records of one process that follow each other, or that were written in one
// second: a traceback is one event, even if another process writes between its lines.
type Events struct {
	Count  [Classes]int64
	Lines  int64 // records at level error or critical, and lines of tracebacks
	Status map[int64]int64
	// Stopped says that the server was asked to stop, and was not started again. AfterStop are the errors since then:
	// its parts end one after the other, and report it.
	Stopped   bool
	AfterStop int64
	// of the event that is open
	open, broken, interrupted bool
	class                     Class
	who                       string
	clock                     int64
}

// maxStatus bounds the different HTTP status codes.
const maxStatus = 999

// record takes the record of an error, of a process at a time.
func (e *Events) record(m, who []byte, clock int64) {
	e.Lines++
	if e.open && (string(who) != e.who || e.broken && clock != e.clock) {
		e.end()
	}
	if !e.open {
		e.open, e.class, e.who = true, OtherError, string(who)
	}
	e.broken, e.clock = false, clock
	e.add(m)
}

// add takes one record or line of the event.
func (e *Events) add(m []byte) {
	e.class = min(e.class, classify(m))
	e.interrupted = e.interrupted || endedBySignal(m)
}

// more takes a line without a header that belongs to the open event, if there is one.
func (e *Events) more(m []byte) bool {
	if !e.open || e.broken || !continues(m) {
		e.broken = true
		return false
	}
	e.Lines++
	e.add(m)
	return true
}

func (e *Events) end() {
	if !e.open {
		return
	}
	e.Stopped = e.Stopped || e.interrupted
	if e.Stopped {
		e.AfterStop++
	} else {
		e.Count[e.class]++
	}
	e.open, e.interrupted = false, false
}

// stop records that the server was asked to stop: errors from here on are a consequence.
func (e *Events) stop() {
	e.end()
	e.Stopped = true
}

// stopSigns begin the messages that a server was asked to stop.
var stopSigns = []string{
	"SIGTERM received", "SIGINT received", "Received SIGTERM", "Received SIGINT", "Received signal 15", "Received signal 2",
	"[shutdown] EngineCore: trigger received signal=", "[shutdown] API server: shutdown triggered", // vLLM since 0.15
	"Shutting down FastAPI HTTP server", "Gracefully stopping http server", // vLLM
	"Shutting down", "Finished server process", // uvicorn
	"Gracefully exiting", "Draining requests",
	"text_generation_launcher: Terminating webserver", // TGI
}

func stops(m []byte) bool {
	return slices.ContainsFunc(stopSigns, func(s string) bool { return hasPrefix(m, s) })
}

// endedBySignal reports whether a record says that SIGINT or SIGTERM ended a process.
func endedBySignal(m []byte) bool { return bySignal().Match(m[:min(len(m), 4096)]) }

var bySignal = pattern.New(`^KeyboardInterrupt|crashed with exit code -(?:15|2)(?:[^0-9]|$)`)

// access takes a line of uvicorn's access log: 127.0.0.1:59234 - "POST /v1/completions HTTP/1.1" 200 OK. generates says
// that the engine answered it.
func (e *Events) access(m []byte) (generates, ok bool) {
	quote := bytes.Index(m[:min(len(m), 128)], []byte(` - "`))
	end := bytes.LastIndex(m, []byte(` HTTP/`))
	if quote < 0 || end < quote+4 {
		return false, false
	}
	request := m[quote+4 : end]
	rest, _ := after(m[end:], `" `)
	code, _, ok := digits(rest)
	if !ok || code < 100 || code > maxStatus {
		return false, false
	}
	e.Status[code]++
	path, isPost := cutPrefix(request, "POST ")
	return code == 200 && isPost && (hasPrefix(path, "/v1/completions") || hasPrefix(path, "/v1/chat/completions") ||
		hasPrefix(path, "/v1/responses") || hasPrefix(path, "/v1/messages") || hasPrefix(path, "/generate") ||
		hasPrefix(path, "/inference/v1/generate")), true
}
