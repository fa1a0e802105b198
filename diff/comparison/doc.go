// Package comparison is the result of comparing two sides, as plain data: what comparison.json holds and all that a
// renderer or a gate needs. It reads, writes and validates itself. It works nothing out, renders nothing, and knows the
// model of reports alone.
package comparison
