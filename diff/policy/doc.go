// Package policy is what a team decided about its gate: rules and budgets, presets, waivers, and what an answer means
// that is none. It reads policy files and rules of the command line, and says which rule selects which metric. It knows
// the metrics that exist by a list that it is given, and no report that is judged.
package policy
