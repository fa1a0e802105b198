package trace

// StartEnd reports whether it is a start/end range, which need not nest.
func (r *Ranges) StartEnd(i int) bool { return r.places[r.place.at(i)].startEnd }

// Kind is the syncType: 1 event, 2 stream wait, 3 stream, 4 context.
func (s *Syncs) Kind(i int) int { return int(s.places[s.place.at(i)].kind) }
