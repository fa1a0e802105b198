// Package diff compares reports: what changed per unit of work, why, and whether it is real. Reports go in, one or
// several a side; a [comparison.Comparison] with a verdict comes out. This package is the way in, and leads a
// comparison from room to room; what is worked out is worked out in these, each of which knows only those above it:
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
//	render                  a comparison as text, page, comment, CSV and JUnit
//
// None of them knows traces, SQLite or GitHub.
package diff
