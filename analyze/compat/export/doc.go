// Package export writes a report in the formats of the tools that explain replaces, for scripts that read them:
// profilemate's summary.json and ncu_summary.json, llm-perf-opt's kernels.md, operators.md, stakeholder_summary.md and
// regions. It reads the report alone.
package export
