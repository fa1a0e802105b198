package historycmd

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/gate/history"
)

func TestMoments(t *testing.T) {
	for text, want := range map[string]int64{
		"2026-01-31": 1769817600, "2026-01-31T01:00:00+01:00": 1769817600, "1769817600": 1769817600,
	} {
		if got, err := momentFlag("time", text); err != nil || got.Unix() != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := momentFlag("time", ""); err != nil || !got.IsZero() {
		t.Errorf("empty: %v, %v", got, err)
	}
	for _, text := range []string{"yesterday", "2026-13-01", "12h", "-5"} {
		var wrong usage.Error
		if _, err := momentFlag("since", text); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--since "+text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A check fails where a change is open, passes where a series was long enough to see one, and else knows nothing.
func TestExitCodeOfACheck(t *testing.T) {
	long, short := []*history.Checked{{}, {Enough: true}}, []*history.Checked{{}}
	for _, x := range []struct {
		checks history.Checks
		want   error
	}{
		{history.Checks{Open: 1, Series: long}, cmdenv.Exit(cmdenv.Fail)},
		{history.Checks{Series: long}, nil},
		{history.Checks{Series: short}, cmdenv.Exit(cmdenv.Inconclusive)},
		{history.Checks{}, cmdenv.Exit(cmdenv.Inconclusive)},
	} {
		if got := checkCode(&x.checks); !errors.Is(got, x.want) {
			t.Errorf("%d open, %d series: %v, want %v", x.checks.Open, len(x.checks.Series), got, x.want)
		}
	}
}

// A history that is not there yet is a note, and no error: the first night has none.
func TestHistoryThatIsNotThere(t *testing.T) {
	f := Flags{Store: filepath.Join(t.TempDir(), "history.db")}
	var opt diff.Options
	said, err := f.Apply(t.Context(), &report.Report{}, "", true, &opt)
	if err != nil || len(said.Notes) != 1 || !strings.Contains(said.Notes[0], "does not exist yet") || opt.Policy != nil {
		t.Errorf("%+v, %v, policy %v", said, err, opt.Policy)
	}
	if said, err := (&Flags{}).Apply(t.Context(), &report.Report{}, "", true, &opt); err != nil || len(said.Notes) != 0 {
		t.Errorf("without --history: %+v, %v", said, err)
	}
}

// An acknowledgement that is over when it is made is a mistake, and so is one of no day.
func TestAckOfADayThatIsOver(t *testing.T) {
	for _, day := range []string{"2020-01-01", "2099-02-30"} {
		cmd := New(&cmdenv.Env{Getenv: func(string) string { return "" }})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"ack", "3f2a91c", "--store", filepath.Join(t.TempDir(), "none.db"), "--reason", "fp8", "--expires", day})
		var wrong usage.Error
		if err := cmd.Execute(); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "--expires "+day) {
			t.Errorf("%s: %v", day, err)
		}
	}
}
