package source

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// export runs nsys export into the scratch folder.
func (in *Input) export(name string) error {
	in.File.Kind = "nsys-rep"
	getenv := in.opt.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	nsys := getenv("NSYS")
	if nsys == "" {
		var err error
		if nsys, err = exec.LookPath("nsys"); err != nil {
			base := strings.TrimSuffix(strings.TrimSuffix(in.File.Name, filepath.Ext(in.File.Name)), ".nsys-rep")
			return in.Fail("is an Nsight Systems report, and nsys is not installed here to export it",
				fmt.Sprintf("where nsys is installed run `nsys export --type sqlite --lazy=false --force-overwrite=true --output %s %s` and give explain the .sqlite, or set $NSYS",
					wording.ShellWord(base+".sqlite"), wording.ShellWord(in.File.Name)), nil)
		}
	}
	out, err := in.scratch("export.sqlite")
	if err != nil {
		return err
	}
	in.opt.Report("export", 0)
	abs, err := filepath.Abs(in.path)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(strings.ToLower(abs), filepath.Ext(name)) { // unpacked: nsys goes by the extension
		named := filepath.Join(in.temp, "report"+filepath.Ext(name))
		if err := os.Rename(abs, named); err != nil {
			return err
		}
		abs = named
	}
	most := limit.Wait(time.Hour)
	ctx, cancel := context.WithTimeout(in.ctx, most)
	defer cancel()
	cmd := exec.CommandContext(ctx, nsys, "export", "--type", "sqlite", "--lazy=false", "--force-overwrite=true",
		"--output", out, abs)
	cmd.Dir, cmd.WaitDelay = in.temp, time.Second
	said, err := cmd.CombinedOutput()
	if e := in.ctx.Err(); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return in.Fail("could not be exported: "+limit.Late("nsys export", most).Error(), "", nil)
	}
	if err != nil {
		return in.Fail("could not be exported by nsys: "+lastLine(said),
			"try `nsys export` of the nsys version that captured it", err)
	}
	if _, err := os.Stat(out); err != nil {
		return in.Fail("was exported by nsys without an error, but no .sqlite was written",
			"try `nsys export` of the nsys version that captured it", nil)
	}
	in.path = out
	return nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if line == "" {
		return "it said nothing"
	}
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return line
}
