package serverlog

import (
	"bytes"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Request is one request as far as the log follows it. Times are in seconds, NoClock if the log does not state them.
type Request struct {
	ID                        string // without the suffix that newer versions add
	Received, Added, Finished int64
	Aborted                   bool
	steps                     int64 // iterations that generated, read until it was added
}

// maxRequests bounds the requests that are followed; maxID bounds the length of an id.
const (
	maxRequests = 1 << 20
	maxID       = 128
)

// Requests are the requests of the logs in the order in which they are first named.
type Requests struct {
	List     []Request
	Timed    []Timed // requests that state their own times, as text-generation-inference logs them
	Received int64   // lines about a request that was received
	Added    int64   // lines about a request that was given to the engine
	Matched  int64   // lines of Added that belong to one of Received
	Dropped  int64   // requests beyond maxRequests, and ids that are too long
	byID     map[string]int32
	open     []int32 // received and not finished
	unclear  int32   // requests before this one were open at a response that could belong to any of them
}

// requestID is the id at the start of b: up to a colon, a space or the end of the sentence.
func requestID(b []byte) []byte {
	id := until(b, ": ,")
	return bytes.TrimRight(id, ".")
}

// find is the request with this id, or with the one that it is without the suffix of newer versions; -1 if there is
// none.
func (r *Requests) find(id []byte) int32 {
	if i, ok := r.byID[string(id)]; ok {
		return i
	}
	n := len(id) - 9 // before a dash and eight hexadecimal digits
	if n > 0 && id[n] == '-' && len(bytes.Trim(id[n+1:], "0123456789abcdef")) == 0 {
		if i, ok := r.byID[string(id[:n])]; ok {
			return i
		}
	}
	return -1
}

// add makes a request, or returns the open one with this id; -1 if it cannot be followed.
func (r *Requests) add(id []byte) int32 {
	if len(r.List) == maxRequests || len(id) == 0 || len(id) > maxID {
		r.Dropped++
		return -1
	}
	i := int32(len(r.List))
	r.List = append(r.List, Request{ID: string(id), Received: NoClock, Added: NoClock, Finished: NoClock})
	r.byID[r.List[i].ID] = i
	r.open = append(r.open, i)
	return i
}

func (r *Requests) received(id []byte, clock int64) bool {
	r.Received++
	if i := r.add(id); i >= 0 {
		r.List[i].Received = clock
	}
	return true
}

// added matches the line of the engine, whose ids end in a random suffix in newer versions, to the server's.
func (r *Requests) added(id []byte, clock, steps int64) bool {
	r.Added++
	i := r.find(id)
	if i >= 0 && r.List[i].Received != NoClock && r.List[i].Added == NoClock {
		r.Matched++
	} else {
		i = r.add(id)
	}
	if i >= 0 {
		r.List[i].Added, r.List[i].steps = clock, steps
	}
	return true
}

func (r *Requests) finished(id []byte, clock int64, aborted bool) bool {
	if i := r.find(id); i >= 0 && r.List[i].Finished == NoClock {
		r.List[i].Finished, r.List[i].Aborted = clock, aborted
		if k := slices.Index(r.open[:min(len(r.open), openReach)], i); k >= 0 {
			r.open = slices.Delete(r.open, k, k+1)
		}
	}
	return true
}

// openReach is how many open requests are searched for one that finishes: requests end roughly in the order in which
// they came, and one that is not found only stays open.
const openReach = 1024

// responded takes an access line of a request to the engine, which names no request and often states no time. It closes
// a request only if exactly one was open and the engine had generated for it: with many open requests the line does not
// say which one ended, and a streamed response is logged when it begins.
func (r *Requests) responded(clock, steps int64) {
	if len(r.open) == 0 {
		return
	}
	if len(r.open) > 1 {
		r.unclear = int32(len(r.List))
	} else if i := r.open[0]; i >= r.unclear {
		if q := &r.List[i]; q.Added != NoClock && steps > q.steps {
			q.Finished = clock
		}
	}
	r.open = r.open[1:]
}

// PublicID is the id of the request if a server made it: a known prefix, hexadecimal digits and dashes. An id that a
// client chose may hold any text, and is shown as empty.
func (r *Request) PublicID() string {
	if !publicID().MatchString(r.ID) {
		return ""
	}
	return r.ID
}

var publicID = pattern.New(`^(?:(?:cmpl|chatcmpl|chatcmpl-tool|embd|pool|classify|score|rerank|resp|generate-tokens|beam_search|` +
	`trsc|trsl|rsp)-|resp_|msg_)?[0-9a-f-]+$`)
