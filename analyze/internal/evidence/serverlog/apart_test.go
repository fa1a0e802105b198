package serverlog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// A log may be written in any time zone, and its lines may lack a year: only what no zone and no year can bring
// together is apart.
func TestApart(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixNano()
	}
	const stats = " [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s"
	const february, march = "02-01 10:00:00|02-01 10:05:00", "03-01 10:00:00|03-01 10:05:00"
	for _, c := range []struct {
		name  string
		logs  []string // each a file of two lines
		begin string   // of a capture of ten seconds, in UTC
		apart bool
	}{
		{"same minute, no year", []string{march}, "2026-03-01T10:02:00Z", false},
		{"same minute, with year", []string{"2026-03-01 10:00:00|2026-03-01 10:05:00"}, "2026-03-01T10:02:00Z", false},
		{"written at UTC+5:45", []string{"03-01 15:45:00|03-01 15:50:00"}, "2026-03-01T10:02:00Z", false},
		{"written at UTC-8", []string{"02-28 23:00:00|02-28 23:05:00"}, "2026-03-01T07:02:00Z", false},
		{"the capture a minute after the last line", []string{march}, "2026-03-01T10:05:59Z", false},
		{"over New Year", []string{"12-31 23:59:00|01-01 00:04:00"}, "2027-01-01T00:02:00Z", false},
		{"New Year of another zone", []string{"12-31 19:00:00|12-31 19:04:00"}, "2027-01-01T00:02:00Z", false},
		{"a whole day of log", []string{"03-01 00:00:00|03-02 00:00:00"}, "2026-03-01T10:02:00Z", false},
		{"two days later", []string{march}, "2026-03-03T10:02:00Z", true},
		{"the year before", []string{"2025-03-01 10:00:00|2025-03-01 10:05:00"}, "2026-03-01T10:02:00Z", true},
		{"the year before, which nobody sees", []string{march}, "2027-03-01T10:02:00Z", false},
		{"nine minutes later, which is no zone", []string{"03-01 10:00:00|03-01 10:02:00"}, "2026-03-01T10:09:00Z", true},
		{"15 minutes later, which is no zone", []string{"03-01 10:00:00|03-01 10:02:00"}, "2026-03-01T10:16:00Z", true},
		{"an hour later, which may be a zone", []string{"03-01 10:00:00|03-01 10:02:00"}, "2026-03-01T11:01:00Z", false},
		{"one of two logs", []string{february, march}, "2026-03-01T10:02:00Z", false},
		{"both logs", []string{february, "02-03 10:00:00|02-03 10:05:00"}, "2026-03-01T10:02:00Z", true},
		{"a log without times", []string{"|"}, "2026-03-01T10:02:00Z", false},
	} {
		var files []file.Input
		for i, text := range c.logs {
			first, last, _ := strings.Cut(text, "|")
			path := filepath.Join(t.TempDir(), strconv.Itoa(i)+".log")
			if err := os.WriteFile(path, []byte("INFO "+first+stats+"\nINFO "+last+stats+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := file.New(path, "server.log")
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, in)
		}
		d, err := Read(t.Context(), files)
		if err != nil {
			t.Fatal(err)
		}
		begin := at(c.begin)
		if text := d.Apart(begin, begin+10e9); (text != "") != c.apart {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}
