package trace

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// PythonSample is what a thread ran in Python at a moment.
type PythonSample struct {
	At     int64
	Thread int32   // indexes Trace.Threads
	Frames []int32 // index Trace.PythonFrames; the innermost first
}

// PythonFrame is a line of a function in Python.
type PythonFrame struct {
	Function, File string // the file with the folder it is in, without those around that
	Line           int64
}

// rawPython is a mark in the domain of Python's samples, or in one that is not known yet.
type rawPython struct {
	at     int64
	thread int64
	domain [2]int64 // process and number
	frames []int32  // by the sink's dictionary, and once settled by that of the trace
	row    int64
}

// domainName keeps the name of a domain of NVTX, if it is the one of Python's samples.
func (s *rangeSink) domainName(row, own []cell) {
	if tid, ok := row[3].Whole(); ok && textOfRange(s.t.l.texts, row) == payload.PythonDomain {
		domain, _ := own[0].Whole()
		s.pythonDomains = append(s.pythonDomains, [2]int64{tid &^ tidBits, domain})
	}
}

// pythonMark keeps a mark that may be a sample of Python.
func (s *rangeSink) pythonMark(row, own []cell, id int64) {
	at, ok1 := row[0].Whole()
	tid, ok2 := row[3].Whole()
	domain, ok3 := own[0].Whole()
	if !ok1 || !ok2 || !ok3 || !sound(at, at) || textOfRange(s.t.l.texts, row) != "" { // samples have no text
		return
	}
	m := rawPython{at: at, thread: tid, domain: [2]int64{tid &^ tidBits, domain}, row: id}
	if m.frames = s.pythonStack([]byte(textOf(&own[1]))); len(m.frames) > 0 {
		s.python = append(s.python, m)
		return
	}
	s.unread[m.domain]++
}

// pythonStack are the frames of a payload; none if it is not as expected.
func (s *rangeSink) pythonStack(b []byte) (frames []int32) {
	for _, f := range payload.Python(b) {
		_, known := s.t.l.texts[int64(f.Function)]
		if _, too := s.t.l.texts[int64(f.File)]; !known || !too {
			return nil
		}
		frames = append(frames, int32(s.pythonFrames.code(f.Function^f.File<<20^f.Line<<40, f)))
	}
	return frames
}

// settlePython brings the samples of all sinks together, by time.
func (t *rangeTable) settlePython() {
	var domains [][2]int64
	var all []rawPython
	var frames lists.Numbering[payload.PythonFrame]
	tr := t.l.trace
	for _, s := range t.sinks {
		domains = append(domains, s.pythonDomains...)
	}
	for _, s := range t.sinks {
		for domain, n := range s.unread {
			if slices.Contains(domains, domain) {
				tr.PythonUnread += n
			}
		}
		for _, m := range s.python {
			if !slices.Contains(domains, m.domain) {
				continue
			}
			for i, code := range m.frames {
				m.frames[i] = frames.Of(s.pythonFrames.keys[code])
			}
			all = append(all, m)
		}
	}
	tr.PythonFrames = lists.Map(frames.Keys, func(f payload.PythonFrame) PythonFrame {
		return PythonFrame{t.l.label(int64(f.Function)), payload.ShortPath(t.l.label(int64(f.File))), int64(f.Line)}
	})
	lists.Sort(all, func(a, b rawPython) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.row, b.row)) })
	t.python = all
	for _, m := range all {
		t.ids = append(t.ids, m.thread)
		tr.Python = append(tr.Python, PythonSample{At: m.at, Frames: m.frames})
	}
}

// adoptPython gives the samples their threads.
func (t *rangeTable) adoptPython(ids *idents) {
	for i, m := range t.python {
		t.l.trace.Python[i].Thread = ids.threads[m.thread]
	}
	t.python = nil
}
