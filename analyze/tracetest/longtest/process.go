package longtest

import (
	"os"
	"runtime/debug"
)

// Tests are many small jobs in one process: garbage is collected rarely, and temporary files are in memory where it has
// room for them. GOGC and TMPDIR say otherwise.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if dir := inMemory(); dir != "" && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", dir)
	}
}
