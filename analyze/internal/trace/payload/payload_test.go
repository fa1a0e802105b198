package payload

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"
)

// numbers in little endian, of 64 bits each.
func numbers(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// head of a payload with a schema.
func head(schema uint32) []byte {
	b := make([]byte, Head)
	binary.LittleEndian.PutUint32(b[Schema:], schema)
	return b
}

func TestNCCL(t *testing.T) {
	fields := Fields{}
	fields.Add(1, 9, 22, 0, "NCCL communicator ID")
	fields.Add(1, 9, 5, 8, "Rank")
	fields.Add(1, 9, 5, 12, "No. of ranks")
	fields.Add(1, 9, 18, 16, "Message size [bytes]")
	fields.Add(1, 7, 22, 0, "NCCL communicator ID")
	fields.Add(1, 7, 5, 8, "Peer rank")
	fields.Add(1, 9, 22, 24, "tokens")  // nobody asks for it
	fields.Add(1, 9, 99, 24, "Rank")    // of a type without a width
	fields.Add(1, 9, 22, -8, "Rank")    // before the payload
	fields.Add(1, 9, 22, 1<<16, "Rank") // far behind it
	whole := append(head(9), numbers(77, 3|8<<32, 4096)...)
	for name, c := range map[string]struct {
		domain int64
		b      []byte
		want   NCCL
		ok     bool
	}{
		"whole":              {1, whole, NCCL{Comm: 77, Rank: 3, World: 8, Peer: -1, Bytes: 4096}, true},
		"another domain":     {2, whole, NCCL{Rank: -1, World: -1, Peer: -1, Bytes: -1}, false},
		"another schema":     {1, append(head(8), numbers(77)...), NCCL{Rank: -1, World: -1, Peer: -1, Bytes: -1}, false},
		"a peer":             {1, append(head(7), numbers(77, 5)...), NCCL{Comm: 77, Rank: -1, World: -1, Peer: 5, Bytes: -1}, true},
		"a peer of -1":       {1, append(head(7), numbers(77, 1<<32-1)...), NCCL{Comm: 77, Rank: -1, World: -1, Peer: -1, Bytes: -1}, true},
		"ends after one":     {1, append(head(9), numbers(77)...), NCCL{Comm: 77, Rank: -1, World: -1, Peer: -1, Bytes: -1}, true},
		"no head":            {1, head(9)[:Head-1], NCCL{Rank: -1, World: -1, Peer: -1, Bytes: -1}, false},
		"a message too long": {1, append(head(9), numbers(0, 0, MaxMessage+1)...), NCCL{Peer: -1, Bytes: -1}, true},
	} {
		if got, ok := fields.NCCL(c.domain, c.b); got != c.want || ok != c.ok {
			t.Errorf("%s: got %+v, %v, want %+v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestPython(t *testing.T) {
	stack := append(head(0), numbers(0, 1|2<<32, 10, 11, 12, 20, 21, 22)...) // state 1, two frames
	want := []PythonFrame{{10, 11, 12}, {20, 21, 22}}
	if got := Python(stack); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, b := range map[string][]byte{
		"cut": stack[:len(stack)-1], "longer": append(bytes.Clone(stack), 0), "no frames said": head(0),
		"a line of 2^31": append(head(0), numbers(0, 1<<32, 10, 11, 1<<31)...),
	} {
		if got := Python(b); got != nil {
			t.Errorf("%s: got %v, want none", name, got)
		}
	}
}

func TestPower(t *testing.T) {
	for _, c := range []struct {
		kind, event string
		want        []Power
	}{
		{"NVML", `{"GPU 1 Power [mW]": 71500}`, []Power{{1, 71.5}}},
		{"", `{"gpu": 2, "power.draw [watts]": "300.25"}`, []Power{{2, 300.25}}},
		{"NVML power", `{"value": 40000}`, []Power{{-1, 40}}}, // the plugin's unit
		{"power", `{"value": 40000}`, nil},                    // in a unit that nobody knows
		{"", `{"power limit [W]": 700}`, nil},
		{"", `{"power [W]": -1, "power draw [W]": 1e6}`, nil},
		{"", `power [W]: 7`, nil},
	} {
		if got := PowerOf(c.kind, c.event); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q of %q: got %v, want %v", c.event, c.kind, got, c.want)
		}
	}
}

// Whatever bytes a capture holds, what is read of them is in range.
func FuzzPayload(f *testing.F) {
	f.Add(append(head(9), numbers(77, 3|8<<32, 4096)...))
	f.Add(append(head(0), numbers(0, 1|1<<32, 10, 11, 12)...))
	f.Add([]byte(`{"gpu": 2, "power [W]": "300"}`))
	fields := Fields{}
	fields.Add(0, 9, 22, 0, "Message size [bytes]")
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := fields.NCCL(0, b); ok && (c.Bytes < 0 || c.Bytes > MaxMessage) {
			t.Errorf("a message of %d bytes", c.Bytes)
		}
		if n := len(Python(b)); n > maxPythonStack {
			t.Errorf("%d frames", n)
		}
		for _, p := range PowerOf("", string(b)) {
			if p.Watts < 0 || p.Watts >= maxWatts || p.Adapter < -1 {
				t.Errorf("%+v", p)
			}
		}
	})
}
