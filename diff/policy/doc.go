// Package policy is what a team decided about its gate: rules and budgets, presets, waivers, and what an answer means
// that is none. It reads policy files and rules of the command line, and says which rule selects which metric. It knows
// the metrics that exist by a list that it is given, and no report that is judged.
//
// A rule names a metric, what it may change by and how strictly: unit.time.p50, +3% and +10us, error. The change breaks
// the rule where it is larger than both parts, in the direction that is bad, and known to be real. A budget bounds the
// head's value and needs no base. Labels and a match single out kernels, calls or ranges; a kernel goes by its full
// name and by the one that tables show. Of several rules that select a number the last one judges it, so that a policy
// goes from the general to the special. A rule that selects nothing is inconclusive, unless it is optional.
//
// To add a preset, touch two files: presets/NAME.yml, which begins with a comment on what it is for, and the list of
// presets in analyze/report/schema/policy.schema.json. Help, completion, explain doc and the tests of all presets
// follow.
package policy
