package trace

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Power is what a GPU drew, as NVML said at one moment (nsys' plugin nvml_metrics).
type Power struct {
	payload.Power
	At int64 // ns
}

// loadPower reads the power of the GPUs from the events of plugins.
func (l *shortTables) loadPower() error {
	if _, ok := l.tables[RoleGeneric]; !ok {
		return nil
	}
	types := map[int64]string{}
	err := l.scanRole(RoleGenericTypes, []string{"typeId", "data"}, func(row []cell) error {
		if id, ok := row[0].Whole(); ok {
			if name, ok := payload.PowerType(textOf(&row[1])); ok {
				types[id] = name
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t := l.trace
	err = l.count(RoleGeneric, []string{"timestamp", "typeId", "data"}, func(row []cell) bool {
		at, ok1 := row[0].Whole()
		id, ok2 := row[1].Whole()
		text := textOf(&row[2])
		name := types[id]
		if !ok1 || !ok2 || !sound(at, at) || !payload.IsPower(name) && !payload.IsPower(text) {
			return true
		}
		list := payload.PowerOf(name, text)
		for _, p := range list {
			t.Power = append(t.Power, Power{p, at})
		}
		if len(list) == 0 {
			t.PowerUnread++
		}
		return true
	})
	lists.Sort(t.Power, func(a, b Power) int {
		return cmp.Or(cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.At, b.At))
	})
	return err
}
