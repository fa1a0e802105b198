package serverlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Details sum up the JSON that vLLM logs of its model of FLOPs and bytes.
type Details struct {
	Lines                     int64
	PrefillTokens, DecodeToks int64
	Parts                     []Part
}

// Part is one component of the model, as attn.qkv_proj.
type Part struct {
	Name               string
	Flops, Read, Write float64
}

// maxParts bounds the components that are kept, and maxPartName the length of a name.
const (
	maxParts    = 128
	maxPartName = 64
)

// mfuDetails is the JSON behind "MFU details: ". Numbers come bare or with a unit: "45.2TF", "12.3GB", "10.0s".
type mfuDetails struct {
	Context struct {
		Prefill float64 `json:"prefill_num_tokens"`
		Decode  float64 `json:"decode_num_tokens"`
	} `json:"context_breakdown"`
	Flops map[string]quantity `json:"flops_breakdown"`
	Read  map[string]quantity `json:"num_read_bytes_breakdown"`
	Write map[string]quantity `json:"num_write_bytes_breakdown"`
}

// quantity is a number with an optional decimal prefix and unit.
type quantity float64

func (q *quantity) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	v, rest, _ := decimal([]byte(s))
	if unit := strings.TrimSpace(string(rest)); unit != "" {
		v *= cmp.Or(decimals[unit[0]], 1)
	}
	if bare, err := strconv.ParseFloat(s, 64); err == nil && bare >= 0 && bare <= math.MaxFloat64 { // may have an exponent
		v = bare
	}
	*q = quantity(v)
	return nil
}

var decimals = map[byte]float64{'T': 1e12, 'G': 1e9, 'M': 1e6, 'K': 1e3, 'k': 1e3}

// mfuLine adds one line of details; b starts at the JSON.
func (d *Details) mfuLine(b []byte) bool {
	var x mfuDetails
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&x); err != nil {
		return false
	}
	d.Lines++
	d.PrefillTokens += count(x.Context.Prefill)
	d.DecodeToks += count(x.Context.Decode)
	for i, list := range []map[string]quantity{x.Flops, x.Read, x.Write} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if p := d.part(name); p != nil {
				*[]*float64{&p.Flops, &p.Read, &p.Write}[i] += float64(list[name])
			}
		}
	}
	return true
}

// count is a number of things, bounded so that sums stay whole.
func count(v float64) int64 {
	if !(v > 0) {
		return 0
	}
	return int64(min(v, 1e12))
}

// part is the component of that name, created if it is missing; nil if the name is not valid or there are too many.
func (d *Details) part(name string) *Part {
	if i := slices.IndexFunc(d.Parts, func(p Part) bool { return p.Name == name }); i >= 0 {
		return &d.Parts[i]
	}
	if len(name) > maxPartName || !partName().MatchString(name) || !keep(&d.Parts, Part{Name: name}, maxParts) {
		return nil
	}
	return &d.Parts[len(d.Parts)-1]
}

var partName = pattern.New(`^(?:attn|ffn|unembed)\.[a-z_.]*$`)
