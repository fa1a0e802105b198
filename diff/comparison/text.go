package comparison

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// ChangeText is a relative change, or an absolute one if there is nothing to divide by.
func ChangeText(r *Row) string {
	if r.Ratio != nil && r.Unit != report.Ratio {
		return unit.Change(Value(r.Ratio) - 1)
	}
	if r.Delta != nil {
		return unit.Delta(Value(r.Delta), r.Unit)
	}
	return NoValue
}

// NoValue stands in a cell whose value is not known.
const NoValue = "–"

// ExactPercent writes a ratio as percent with as many decimals as it needs: 3%, 0.5%.
func ExactPercent(v float64) string {
	return unit.Shift(strconv.FormatFloat(v, 'f', -1, 64), 2) + "%"
}

// OfTime reports whether a metric says how long a unit or the whole work takes.
func OfTime(metric string) bool { return Begins(metric, "unit.time", MetricWork) }

// CountsEvents reports whether a metric counts events of the capture or adds them up, so that lost ones change it. The
// time of a unit and what servers, clients and Nsight Compute measured do not.
func CountsEvents(metric string) bool { return !Begins(metric, "unit.time") && !Beside(metric) }

// Beside reports whether a metric is of what servers, clients and Nsight Compute measured, beside the capture.
func Beside(metric string) bool { return Begins(metric, "serve.", "load.", "ncu.") }

// IsLatency reports whether a metric is a latency of requests as clients saw it.
func IsLatency(metric string) bool {
	return Begins(metric, "serve.ttft", "serve.tpot", "serve.itl", "serve.e2e")
}

// Begins reports whether a name begins with one of several texts.
func Begins(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
