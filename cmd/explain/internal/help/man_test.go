package help

import (
	"strings"
	"testing"
)

func TestMan(t *testing.T) {
	root := sample()
	cmd, _, err := root.Find([]string{"diff"})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Long = "Compares.\n.so /etc/passwd\n'quoted' and a back\\slash"
	var b strings.Builder
	if err := Man(&b, cmd, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH \"EXPLAIN-DIFF\" 1 \"\" \"v1.2.3\" \"explain\"\n", ".SH NAME\nexplain\\-diff \\- Compare\n",
		".SH SYNOPSIS\n.B explain diff BASE HEAD [flags]\n", "\n\\&.so /etc/passwd\n\\&'quoted' and a back\\eslash\n", ".SH OUTPUT\n",
		".TP\n.B \\-\\-top N\nrows of ranked tables, N at most\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
