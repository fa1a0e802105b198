// Package policy is a team's decision about its gate: rules and budgets, presets, waivers, and the verdict for a
// missing answer. It reads policy files and rules of the command line, and finds which rule selects which metric. It
// knows the metrics that exist from a list that it is given, and never sees a report.
//
// A rule names a metric, its tolerated change and a level: unit.time.p50, +3% and +10us, error. A change breaks the
// rule if it is larger than both parts, in the bad direction, and known to be real. A budget bounds the head's value
// and needs no base. Labels and a match single out kernels, calls or ranges; a kernel is found by its full name and by
// the one in tables. If several rules select a number, the last one judges it, so that a policy goes from the general
// to the special. A rule that selects nothing is inconclusive, unless it is optional.
//
// To add a preset, touch two files: presets/NAME.yml, which begins with a comment on what it is for, and the list of
// presets in analyze/report/schema/policy.schema.json. Help, completion, explain doc and the tests of all presets
// follow.
package policy
