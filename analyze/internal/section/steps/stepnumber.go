package steps

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// mostStepNumbers bounds how many numbers in the name of a range are read.
const mostStepNumbers = 4

// stepNumbers are the numbers in the units' markers, such as 12 of ProfilerStep#12 or "[Executor] _forward_step 12: 2
// ctx reqs, …". For other ranges it is the first number in their names that rises from each unit of a process on a
// device to the next; numbers of layers start anew in each step. nil if there is none, or more units than a series
// lists.
func stepNumbers(in *kit.Input) []int64 {
	units := in.Units.Units
	if len(units) == 0 || len(units) > report.MaxSeriesUnits {
		return nil
	}
	ranges := make([]int, len(units))
	for i := range units {
		r := units[i].Marker
		if r == trace.None || !mayCount(in.Trace.Ranges.Names[in.Trace.Ranges.Name(int(r))].Text) {
			return nil
		}
		ranges[i] = int(r)
	}
	texts, err := in.Trace.RangeText(ranges)
	if err != nil {
		return nil // the names cannot be read again: the units are numbered by their order alone
	}
	columns := make([][]int64, mostStepNumbers)
	found := mostStepNumbers
	for _, text := range texts {
		list := numbersIn(text, found)
		found = len(list)
		for k, v := range list {
			columns[k] = append(columns[k], v)
		}
	}
	for _, numbers := range columns[:found] {
		if rises(in, numbers) {
			return numbers
		}
	}
	return nil
}

// mayCount reports whether a range of this canonical name may carry a number of its own.
func mayCount(name string) bool {
	if m, ok := kernelname.ParseMarker(name); ok {
		return m.Engine == kernelname.EnginePyTorch || m.Engine == kernelname.EngineTRTLLM
	}
	return strings.ContainsAny(name, "#0123456789")
}

// rises reports whether numbers, by unit, rise from each unit of a process on a device to the next.
func rises(in *kit.Input, numbers []int64) bool {
	units := in.Units.Units
	several := false
	for i := 1; i < len(units); i++ {
		if a, b := &units[i-1], &units[i]; a.Index == b.Index && a.Proc == b.Proc {
			if several = true; numbers[i] <= numbers[i-1] {
				return false
			}
		}
	}
	return several
}

// numbersIn are the first numbers of a text, at most that many; one that does not fit ends the list. For an engine's
// marker it is only the number of the step.
func numbersIn(text string, most int) (list []int64) {
	if m, ok := kernelname.ParseMarker(text); ok {
		if m.Step == kernelname.Unknown {
			return nil
		}
		return []int64{m.Step}[:min(most, 1)]
	}
	for _, digits := range number.FindAllString(text, most) {
		v, err := strconv.ParseInt(digits, 10, 48)
		if err != nil {
			break
		}
		list = append(list, v)
	}
	return list
}

var number = regexp.MustCompile("[0-9]+")
