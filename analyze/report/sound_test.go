package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

type colour string

func (c colour) Valid() bool { return c == "red" }

type inner struct {
	Name   string            `json:"name"`
	Values []float64         `json:"values"`
	Labels map[string]string `json:"labels"`
	Maybe  *float64          `json:"maybe,omitempty"`
	More   []inner           `json:"more,omitempty"`
}

type common struct {
	Schema string `json:"schema"`
}

type outer struct {
	common
	Colour colour    `json:"colour"`
	List   []*inner  `json:"list"`
	Rows   []inner   `json:"rows"`
	One    inner     `json:"one" lines:"true"`
	Grid   [][]int64 `json:"grid"`
	Hidden []int64   `json:"-"`
}

func whole() *outer {
	o := &outer{common: common{"x/1"}, Colour: "red", List: []*inner{{Name: "a"}}, Rows: []inner{{Name: "b<c"}, {Name: "d"}}}
	Complete(o)
	return o
}

func TestComplete(t *testing.T) {
	o := whole()
	if o.List[0].Values == nil || o.Rows[0].Labels == nil || o.One.Values == nil || o.Grid == nil {
		t.Errorf("something is nil: %+v", o)
	}
	if o.Hidden != nil || o.Rows[0].More != nil || o.Rows[0].Maybe != nil {
		t.Errorf("what is not written was filled: %+v", o)
	}
}

func TestSound(t *testing.T) {
	nan := math.NaN()
	for want, change := range map[string]func(o *outer){
		"":                            func(*outer) {},
		`colour is "blue"`:            func(o *outer) { o.Colour = "blue" },
		"rows is null":                func(o *outer) { o.Rows = nil },
		"rows[1].labels is null":      func(o *outer) { o.Rows[1].Labels = nil },
		"list[0].maybe is not a fini": func(o *outer) { o.List[0].Maybe = &nan },
		"one.values[2] is not a fini": func(o *outer) { o.One.Values = []float64{1, 2, math.Inf(1)} },
		"rows[0].more[0].values is n": func(o *outer) { o.Rows[0].More = []inner{{}} },
	} {
		o := whole()
		change(o)
		if err := Sound(o); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Lists of objects have a line for each, other lists one; an empty list is on its line.
func TestWriteLines(t *testing.T) {
	o := whole()
	o.One.More = []inner{{Name: "e", Values: []float64{}, Labels: map[string]string{}}}
	o.Grid = [][]int64{{1, 2}, {3}}
	const want = `{
"schema": "x/1",
"colour": "red",
"list": [{"name":"a","values":[],"labels":{}}],
"rows": [
{"name":"b<c","values":[],"labels":{}},
{"name":"d","values":[],"labels":{}}
],
"one": {
"name": "",
"values": [],
"labels": {},
"more": [
{"name":"e","values":[],"labels":{}}
]
},
"grid": [[1,2],[3]]
}
`
	var b bytes.Buffer
	if err := WriteLines(&b, o); err != nil || b.String() != want {
		t.Errorf("%v\n%s", err, b.String())
	}
}
