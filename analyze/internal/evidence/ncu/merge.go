package ncu

import "github.com/nsys-llm/explain/analyze/internal/kernelname"

// merger puts launches together that several pages hold: raw and details pages of one report, its sections one by one,
// exports of two versions.
type merger struct {
	launches  []*Launch
	at        map[key][]*held
	canonical map[string]string // of the names met
	pages     int64
	block     int
}

// key under which pages of one report hold the same launch. Without a process there is none.
type key struct {
	id, pid int64
	kernel  string
}

// held is a launch and the last page it was found on.
type held struct {
	*Launch
	block int
}

func newMerger() *merger { return &merger{at: map[key][]*held{}, canonical: map[string]string{}} }

// maxSame bounds how many launches of one key are compared with a new one: in a folder of many runs each may have a
// launch 0 of the same process number.
const maxSame = 64

// add takes the launches of a page. One that is known from another page, and agrees with it in all that both say, is
// the same one: two runs never agree to the last digit.
func (m *merger) add(pg *page) {
	m.block++
	for _, b := range pg.launches {
		l := &b.Launch
		if l.PID == 0 {
			m.launches = append(m.launches, l)
			continue
		}
		name, ok := m.canonical[l.name]
		if !ok {
			name = kernelname.Canonical(l.name)
			m.canonical[l.name] = name
		}
		k := key{l.ID, l.PID, name}
		if h := m.find(k, l); h != nil {
			h.merge(l)
			h.block = m.block
			m.pages++
			continue
		}
		m.launches = append(m.launches, l)
		m.at[k] = append(m.at[k], &held{l, m.block})
	}
}

func (m *merger) find(k key, l *Launch) *held {
	list := m.at[k]
	for _, h := range list[:min(len(list), maxSame)] {
		if h.block != m.block && h.agrees(l) {
			return h
		}
	}
	return nil
}

// finish computes what needs all pages of a launch.
func (m *merger) finish() ([]Launch, int64) {
	list := make([]Launch, len(m.launches))
	for i, l := range m.launches {
		l.Flops = l.counts.flops(l)
		l.counts = counters{}
		list[i] = *l
	}
	return list, m.pages
}
