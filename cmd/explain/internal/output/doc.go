// Package output holds what explain writes: the formats of a report, and the folders of reports and comparisons.
package output
