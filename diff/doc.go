// Package diff compares reports: what changed per unit of work, why, and whether it is real. It takes one or several
// reports a side, and returns a [comparison.Comparison] with a verdict. It calls these packages, each of which imports
// only those above it:
//
//	comparison              the result as plain data, its JSON and its validation
//	policy                  rules, presets, matching, YAML, waivers
//	student                 Student's t and the test that histories share
//	internal/significance   statistics
//	internal/side           one side: its reports, and what each says of a kind of unit
//	internal/pairing        what two sides have in common: kind of unit, work, kernels
//	internal/noise          whether a change is real: noise floors, tests, calibration
//	internal/breakdown      where a change comes from
//	internal/rules          gates and waivers
//	diffdoc                 a comparison as text, page, comment, CSV and JUnit
//
// None of them knows traces, SQLite or GitHub.
package diff
