package trace

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Power is what a GPU drew, as NVML said at one moment (nsys' plugin nvml_metrics).
type Power struct {
	Adapter int32 // of the machine, as in GPUInfo.ID; -1 where the event does not say
	At      int64 // ns
	Watts   float64
}

// maxWatts is more than any GPU draws.
const maxWatts = 1e5

// loadPower reads the power of the GPUs from the events of plugins: JSON objects whose fields, or whose type, are named
// after power and its unit. Values may be written as texts. A field without a unit is in milliwatts if its type is named
// after NVML, and else left out: nobody knows whether it is in watts or milliwatts.
func (l *loader) loadPower() (*TableStat, error) {
	table, ok := l.tables[RoleGeneric]
	if !ok {
		return nil, nil
	}
	stat := &TableStat{Role: RoleGeneric, Name: table.Name}
	types := map[int64]string{}
	err := l.scanRole(RoleGenericTypes, []string{"typeId", "data"}, func(row []cell) error {
		if id, ok := row[0].Whole(); ok && (isPower(textOf(&row[1])) || isNVML(textOf(&row[1]))) {
			var about struct{ Name string }
			_ = json.Unmarshal([]byte(textOf(&row[1])), &about) // without a name the events' fields tell
			types[id] = about.Name
			if isPower(textOf(&row[1])) && !isPower(about.Name) {
				types[id] += " power"
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	t := l.trace
	err = l.scanRole(RoleGeneric, []string{"timestamp", "typeId", "data"}, func(row []cell) error {
		stat.Rows++
		at, ok1 := row[0].Whole()
		id, ok2 := row[1].Whole()
		text := textOf(&row[2])
		name := types[id]
		if !ok1 || !ok2 || !sound(at, at) || !isPower(name) && !isPower(text) {
			return nil
		}
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) != nil {
			t.PowerUnread++
			return nil
		}
		read := false
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			watts, ok := wattsOf(name, field, fields[field])
			if !ok {
				continue
			}
			read = true
			t.Power = append(t.Power, Power{Adapter: adapterOf(name, field, fields), At: at, Watts: watts})
		}
		if !read {
			t.PowerUnread++
		}
		return nil
	})
	slices.SortStableFunc(t.Power, func(a, b Power) int {
		return cmp.Or(cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.At, b.At))
	})
	return stat, err
}

// Units of power in names: "Power [mW]", "power_usage_mw", "GPU 0 Power (W)", "power.draw [watts]".
var (
	inMilliwatts = regexp.MustCompile(`(?i)(^|[^a-z])(mw|milliwatts?)($|[^a-z])`)
	inWatts      = regexp.MustCompile(`(?i)(^|[^a-z])(w|watts?)($|[^a-z])`)
	ofLimit      = regexp.MustCompile(`(?i)limit|cap\b|max|min|state|threshold`)
	gpuNumber    = regexp.MustCompile(`(?i)(?:gpu|device|nvidia)[ _#:\[(]{0,2}([0-9]{1,3})(?:[^0-9]|$)`)
)

func isPower(text string) bool { return strings.Contains(strings.ToLower(text), "power") }

func isNVML(text string) bool { return strings.Contains(strings.ToLower(text), "nvml") }

// wattsOf is the power that a field states; not ok where it is none, or in a unit that nobody knows.
func wattsOf(kind, field string, value any) (watts float64, ok bool) {
	name := field
	if !isPower(field) {
		if f := strings.ToLower(field); f != "value" && f != "watts" && f != "milliwatts" {
			return 0, false
		}
		name = kind + " " + field
	}
	if !isPower(name) || ofLimit.MatchString(name) {
		return 0, false
	}
	watts, ok = number(value)
	switch {
	case inMilliwatts.MatchString(field), !inWatts.MatchString(field) && inMilliwatts.MatchString(kind):
		watts /= 1000
	case inWatts.MatchString(field), inWatts.MatchString(kind):
	case isNVML(kind): // as nsys' user guide says of the plugin
		watts /= 1000
	default:
		return 0, false
	}
	return watts, ok && watts >= 0 && watts < maxWatts
}

// number of a JSON value, which may be a text.
func number(value any) (float64, bool) {
	v, ok := value.(float64)
	if s, text := value.(string); text {
		var err error
		v, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
		ok = err == nil
	}
	return v, ok && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// adapterOf is the GPU that a field is about: by a field that numbers it, else by the number in the field's or the
// type's name; -1 where nothing says it.
func adapterOf(kind, field string, fields map[string]any) int32 {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch strings.NewReplacer(" ", "", "_", "", ".", "").Replace(strings.ToLower(key)) {
		case "gpu", "gpuid", "gpuindex", "device", "deviceid", "deviceindex", "index":
			if v, ok := number(fields[key]); ok && v >= 0 && v < 1<<16 && v == math.Trunc(v) {
				return int32(v)
			}
		}
	}
	for _, name := range []string{field, kind} {
		if m := gpuNumber.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				return int32(n)
			}
		}
	}
	return -1
}
