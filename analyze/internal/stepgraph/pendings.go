package stepgraph

// pending is the end of a call or of a kernel of a collective, still to come.
type pending struct {
	at    int64
	call  int32 // or trace.None
	piece int32 // the kernel, or what kept the call, or trace.None
}

// pendings is a heap of them, the next one first: container/heap without a value in an interface for each.
type pendings []pending

func (p *pendings) push(x pending) {
	*p = append(*p, x)
	h := *p
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up].at <= h[i].at {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (p *pendings) pop() pending {
	h := *p
	n := len(h) - 1
	x := h[0]
	h[0] = h[n]
	h = h[:n]
	for i := 0; 2*i+1 < n; {
		down := 2*i + 1
		if down+1 < n && h[down+1].at < h[down].at {
			down++
		}
		if h[down].at >= h[i].at {
			break
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
	*p = h
	return x
}
