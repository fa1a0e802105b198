package tracetest

import (
	"slices"
	"strings"
	"testing"
)

func TestCanariesAreAllInTheFile(t *testing.T) {
	for _, schema := range []string{OldestSchema, "3.0.0", "3.11.1", "3.16.1", "3.25.0"} {
		b := Tiny(Schema(schema))
		var asked []string
		planted := b.Canaries(func(table, column string) string {
			s := "s3cret-" + strings.ToLower(table) + "-" + column
			asked = append(asked, s)
			return s
		})
		all := dump(t, b.WriteTB(t))
		if len(planted) < 8 || len(planted) != len(asked) {
			t.Errorf("%s: %d canaries planted, %d asked for", schema, len(planted), len(asked))
		}
		for i, c := range planted {
			if c.Text != asked[i] {
				t.Errorf("%s: canary %d is %q, not %q", schema, i, c.Text, asked[i])
			}
			if slices.Index(asked, c.Text) != i {
				t.Errorf("%s: %s.%s was asked for twice", schema, c.Table, c.Column)
			}
			if !strings.Contains(all, c.Text) {
				t.Errorf("%s: %s.%s is not in the file", schema, c.Table, c.Column)
			}
		}
		if schema == DefaultSchema && !slices.ContainsFunc(planted, func(c Canary) bool { return c.Column == "value[DeviceEnvironment]" }) {
			t.Error("the environment has no canary")
		}
	}
}

// Every text column of the file holds a canary, or is one that a report may show.
func TestCanariesLeaveNoTextColumnOut(t *testing.T) {
	shown := []string{
		"NVTX_EVENTS.text", "PROCESSES.name", "TARGET_INFO_GPU.name", "TARGET_INFO_GPU.chipName", "META_DATA_CAPTURE.name", "META_DATA_EXPORT.name",
		"EXPORT_META_DATA.name", "TARGET_INFO_SESSION_START_TIME.utcTime", "TARGET_INFO_SESSION_START_TIME.localTime",
	}
	for _, schema := range []string{"3.0.0", "3.16.1", "3.25.0"} {
		b := everything(Schema(schema))
		db := open(t, b.WriteTB(t))
		for _, c := range texts(t, db, "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE c.type = 'TEXT' AND m.name NOT LIKE 'ENUM%'") {
			if slices.Contains(shown, c) {
				continue
			}
			table, col, _ := strings.Cut(c, ".")
			if n := text(t, db, "SELECT count(*) FROM "+quote(table)+" WHERE "+quote(col)+" LIKE '%canary:%'"); n == "0" {
				t.Errorf("%s: %s holds no canary", schema, c)
			}
		}
	}
}
