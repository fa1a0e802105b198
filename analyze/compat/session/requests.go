package session

import "hash/maphash"

// Requests holds preemptions and the lifetimes of requests.
type Requests struct {
	Preempted int64
	Reasons   map[string]*int64
	RunTime   Sample // ns from a request's start to its preemption
	Delay     Sample // ns from a preemption to the resumption, of events
	Started   int64  // requests seen from their start, of events and of request_lifecycle.csv, whichever has more
	TotalTime Sample // ns of request_lifecycle.csv

	listedStart   int64  // of them, those with a start
	listedPreempt int64  // of them, those that were preempted
	listedDelay   Sample // ns; one per request, of its last preemption
	eventStart    int64
	waiting       map[uint64]float64 // seconds at which a request was preempted, by the hash of its id
	lost          int64              // preemptions beyond maxWaiting
}

// maxWaiting bounds the requests that wait for their resumption at once.
const maxWaiting = 1 << 18

// idHash changes with every run of the program: hashes are only compared, never stored.
var idHash = maphash.MakeSeed()

func (d *Data) takeEvent(r *row) bool {
	at, ok := r.seconds(0)
	if !ok {
		return false
	}
	q, id := &d.Requests, maphash.Bytes(idHash, r.text(1))
	switch string(r.text(2)) {
	case "preempted":
		q.Preempted++
		if reason := r.text(3); len(reason) > 0 {
			*entry(&q.Reasons, enumWord(reasonWords, reason))++
		}
		if ns, ok := r.duration(4, nsPerS); ok && ns > 0 {
			q.RunTime.add(ns)
		}
		if len(q.waiting) >= maxWaiting {
			q.lost++
			return true
		}
		if q.waiting == nil {
			q.waiting = map[uint64]float64{}
		}
		q.waiting[id] = at
	case "resumed":
		if from, ok := q.waiting[id]; ok && at >= from {
			q.Delay.add(roundNs(at - from))
		}
		delete(q.waiting, id)
	case "started":
		q.eventStart++
	case "finished", "evicted":
		delete(q.waiting, id)
	default:
		return false
	}
	return true
}

func (d *Data) takeRequest(r *row) bool {
	q := &d.Requests
	started, ok1 := optionalSeconds(r, 1)
	preempted, ok2 := optionalSeconds(r, 2)
	resumed, ok3 := optionalSeconds(r, 3)
	finished, ok4 := optionalSeconds(r, 4)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return false
	}
	if started != nil {
		q.listedStart++
	}
	if preempted != nil {
		q.listedPreempt++
	}
	if preempted != nil && resumed != nil && *resumed >= *preempted {
		q.listedDelay.add(roundNs(*resumed - *preempted))
	}
	if started != nil && finished != nil && *finished >= *started {
		q.TotalTime.add(roundNs(*finished - *started))
	}
	return true
}

// optionalSeconds is a point in time, nil if the field is empty; false if it is neither.
func optionalSeconds(r *row, column int) (*float64, bool) {
	if len(r.text(column)) == 0 {
		return nil, true
	}
	v, ok := r.seconds(column)
	return &v, ok
}

// finish fills in the values that either of the two files can give.
func (q *Requests) finish() {
	q.Started = max(q.eventStart, q.listedStart)
	if q.Delay.N() == 0 {
		q.Delay = q.listedDelay
	}
	if q.Preempted == 0 {
		q.Preempted = q.listedPreempt
	}
}
