// Package diffdoc writes a comparison: as text for a terminal, as markdown, as a page for a browser, as a comment, as
// CSV and as JUnit. It selects and lays out, and computes nothing.
package diffdoc
