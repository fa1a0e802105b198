package render

import "cmp"

// fixed lists the names that have the same colour on every page: categories of kernels, classes of a unit's time,
// causes of idle time. The style sheet has the colours, which colour-blind readers can distinguish (a test measures
// it); unknown parts are pale, and rests grey.
var fixed = map[string]markup{
	"compute": "k-compute", "idle": "k-idle",
	"exposed communication": "k-comm", "exposed comm": "k-comm", "communication": "k-comm", "comm": "k-comm",
	"exposed copy": "k-copy", "copy": "k-copy",

	"sync": "k-sync", "host": "k-host", "launch": "k-launch", "call": "k-launch",
	"dependency": "k-dependency", "latency": "k-dependency",
	"unknown": "k-unknown", "other": "k-unknown", "others": "k-unknown", "(others)": "k-unknown",
	"idle: sync": "k-sync", "idle: host": "k-host", "idle: launch": "k-launch", "idle: dependency": "k-dependency",
	"idle: unknown": "k-unknown",

	"memory": "k-memory", "kv_cache": "k-kv", "attention": "k-attention", "linear_attn": "k-linear",
	"moe_gemm": "k-moegemm", "moe_route": "k-moeroute", "gemm": "k-gemm", "norm": "k-norm", "rope": "k-rope",
	"activation": "k-activation", "quant": "k-quant", "sampling": "k-sampling", "softmax": "k-softmax",
	"prepare": "k-prepare", "reduce": "k-reduce", "elementwise": "k-elementwise", "triton": "k-triton",
}

// palette is the number of colours in the style sheet for series without a fixed colour (a device, a percentile, a
// side), after Okabe and Ito, which colour-blind readers can distinguish.
const palette = 8

// grey is the index of the neutral colour.
const grey = 6

func colour(i int) markup { return "c" + num(i%palette) }

// fixedOr is the fixed colour of a name, or another if it has none.
func fixedOr(name string, other markup) markup { return cmp.Or(fixed[name], other) }

// partColour is the colour of the i-th part of a whole: its fixed one, or the next of the palette.
func partColour(i int, name string) markup {
	if i >= grey {
		i++
	}
	return fixedOr(name, colour(i))
}

var sides = map[string]markup{"base": "side-base", "head": "side-head"}
