package payload

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Power is what a GPU drew, as an event of a plugin says.
type Power struct {
	Adapter int32 // of the machine, as in the capture's list of GPUs; -1 if the event does not say
	Watts   float64
}

// maxWatts is more than any GPU draws.
const maxWatts = 1e5

// PowerOf reads the power of GPUs from an event: a JSON object whose fields, or whose type, are named after power and
// its unit. Values may be written as texts. A field without a unit is in milliwatts if its type is named after NVML,
// and else left out: nobody knows whether it is in watts or milliwatts.
func PowerOf(kind, event string) (list []Power) {
	var fields map[string]any
	if json.Unmarshal([]byte(event), &fields) != nil {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if watts, ok := wattsOf(kind, field, fields[field]); ok {
			list = append(list, Power{Adapter: adapterOf(kind, field, fields), Watts: watts})
		}
	}
	return list
}

// PowerType is the name of a type of events from its description; ok is false if they may not be about power. If
// only the description names power, its name does too.
func PowerType(about string) (name string, ok bool) {
	if !IsPower(about) && !isNVML(about) {
		return "", false
	}
	var x struct{ Name string }
	_ = json.Unmarshal([]byte(about), &x) // without a name the events' fields tell
	if IsPower(about) && !IsPower(x.Name) {
		x.Name += " power"
	}
	return x.Name, true
}

// Units of power in names: "Power [mW]", "power_usage_mw", "GPU 0 Power (W)", "power.draw [watts]".
var (
	inMilliwatts = regexp.MustCompile(`(?i)(^|[^a-z])(mw|milliwatts?)($|[^a-z])`)
	inWatts      = regexp.MustCompile(`(?i)(^|[^a-z])(w|watts?)($|[^a-z])`)
	ofLimit      = regexp.MustCompile(`(?i)limit|cap\b|max|min|state|threshold`)
	gpuNumber    = regexp.MustCompile(`(?i)(?:gpu|device|nvidia)[ _#:\[(]{0,2}([0-9]{1,3})(?:[^0-9]|$)`)
)

// IsPower reports whether a text names power.
func IsPower(text string) bool { return strings.Contains(strings.ToLower(text), "power") }

// isNVML reports whether a text names NVML.
func isNVML(text string) bool { return strings.Contains(strings.ToLower(text), "nvml") }

// wattsOf is the power that a field states; not ok if it is none, or in a unit that nobody knows.
func wattsOf(kind, field string, value any) (watts float64, ok bool) {
	name := field
	if !IsPower(field) {
		if f := strings.ToLower(field); f != "value" && f != "watts" && f != "milliwatts" {
			return 0, false
		}
		name = kind + " " + field
	}
	if !IsPower(name) || ofLimit.MatchString(name) {
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
// type's name; -1 if nothing says it.
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
