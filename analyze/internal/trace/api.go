package trace

import "strings"

// APIName is one distinct CUDA API name, suffix stripped, and what kind of call it is.
type APIName struct {
	Name        string
	Launch      bool // starts work: kernel or graph launch, host functions excepted
	GraphLaunch bool
	Sync        bool // blocks until the device, a stream, an event or a context is done
	SyncCopy    bool // a memcpy call that returns when the copy is done
	AsyncCopy   bool
	Memset      bool // any memset call
	AsyncSet    bool
	OldSync     bool // cudaThreadSynchronize: blocks, but is outside the four families of blocking calls; listed apart
	Poll        bool // asks without blocking: cudaEventQuery, cudaStreamQuery
	Record      bool // records an event into a stream: cudaEventRecord
	Frees       bool // frees memory, and waits for the device unless the memory is of a pool: cudaFree
	Wait        bool // makes a stream wait, not the host: cudaStreamWaitEvent
	BeginsGraph bool // from here its thread captures work into a graph: cudaStreamBeginCapture
	EndsGraph   bool // ends that: cudaStreamEndCapture
}

// Blocking reports whether the call keeps its thread until the GPU is done.
func (n *APIName) Blocking() bool { return n.Sync || n.SyncCopy }

// stripSuffix removes the version and per-thread-stream suffixes nsys keeps in API names: cudaLaunchKernel_v7000 and
// cudaLaunchKernel_ptsz_v7000 are cudaLaunchKernel.
func stripSuffix(name string) string {
	for {
		i := strings.LastIndexByte(name, '_')
		if i <= 0 {
			return name
		}
		switch tail := name[i+1:]; {
		case tail == "ptsz" || tail == "ptds":
		case len(tail) > 1 && tail[0] == 'v' && strings.Trim(tail[1:], "0123456789") == "":
		default:
			return name
		}
		name = name[:i]
	}
}

// hipBase is CUDA's name, without prefix, for a call of AMD's HIP: hipExtModuleLaunchKernel is LaunchKernel, and
// hipMemcpyWithStream waits for its copy.
func hipBase(base string) string {
	base = strings.TrimPrefix(base, "Ext")
	if rest, ok := strings.CutPrefix(base, "Module"); ok && strings.HasPrefix(rest, "Launch") {
		return rest
	}
	return base
}

// classifyAPI classifies a stripped name. A launch starts with cudaLaunch, cuLaunch, cudaGraphLaunch or cuGraphLaunch,
// or the same of HIP, and is not a host function; a blocking call is a Device-, Stream-, Event- or CtxSynchronize, or a
// copy without Async.
func classifyAPI(name string) APIName {
	n := APIName{Name: name}
	base, ok := strings.CutPrefix(name, "cuda")
	if !ok {
		base, ok = strings.CutPrefix(name, "cu")
	}
	if !ok {
		if base, ok = strings.CutPrefix(name, "hip"); !ok {
			return n
		}
		base = hipBase(base)
	}
	async := strings.Contains(base, "Async")
	switch {
	case strings.HasPrefix(base, "GraphLaunch"):
		n.Launch, n.GraphLaunch = true, true
	case strings.HasPrefix(base, "Launch"):
		n.Launch = !strings.HasPrefix(base, "LaunchHostFunc")
	case strings.HasPrefix(base, "Memcpy"):
		n.AsyncCopy, n.SyncCopy = async, !async
	case strings.HasPrefix(base, "Memset"):
		n.Memset, n.AsyncSet = true, async
	case strings.HasPrefix(base, "StreamWaitEvent"):
		n.Wait = true
	case strings.HasPrefix(base, "StreamBeginCapture"):
		n.BeginsGraph = true
	case strings.HasPrefix(base, "StreamEndCapture"):
		n.EndsGraph = true
	case strings.HasPrefix(base, "EventRecord"):
		n.Record = true
	case strings.HasPrefix(base, "Free") && !async, strings.HasPrefix(base, "MemFree") && !async:
		n.Frees = true
	case strings.HasPrefix(base, "EventQuery"), strings.HasPrefix(base, "StreamQuery"):
		n.Poll = true
	case strings.HasPrefix(base, "ThreadSynchronize"):
		n.OldSync = true
	case strings.HasPrefix(base, "DeviceSynchronize"), strings.HasPrefix(base, "StreamSynchronize"),
		strings.HasPrefix(base, "EventSynchronize"), strings.HasPrefix(base, "CtxSynchronize"):
		n.Sync = true
	}
	return n
}
