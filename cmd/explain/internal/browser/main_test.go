package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/diff/comparison"
)

func TestMain(m *testing.M) { explaintest.Main(browsing{m}) }

// browsing is the tests with one browser for all of them, and a folder for the pages that several look at.
type browsing struct{ *testing.M }

func (m browsing) Run() int {
	defer func() {
		if chromium.stop != nil {
			chromium.stop()
		}
		os.RemoveAll(made.dir)
	}()
	return m.M.Run()
}

// chromium is a headless browser.
var chromium struct {
	once sync.Once
	root context.Context
	stop func()
	none string // why there is none
}

func startChromium() {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		chromium.none = "no Chromium on this machine"
		return
	}
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		chromium.none = err.Error()
		return
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.UserDataDir(dir))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	root, closeAll := chromedp.NewContext(alloc)
	chromium.root, chromium.stop = root, func() {
		_ = chromedp.Cancel(root)
		closeAll()
		stop()
		os.RemoveAll(dir)
	}
	if err := chromedp.Run(root); err != nil {
		chromium.none = "Chromium does not start: " + err.Error()
	}
}

// needBrowser skips a test where there is no Chromium, and runs it beside the others.
func needBrowser(t *testing.T) {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.none != "" {
		t.Skip(chromium.none)
	}
}

// open opens a page in a new tab and gives, besides the tab, everything that the page complained of or asked the network
// for.
func open(t *testing.T, file string, scripts bool) (context.Context, func() []string) {
	t.Helper()
	needBrowser(t)
	tab, cancel := chromedp.NewContext(chromium.root)
	ctx, expire := context.WithTimeout(tab, 10*time.Minute) // only a page that hangs takes that long
	t.Cleanup(func() { expire(); cancel() })
	var complaints []string
	seen := make(chan string, 1000)
	chromedp.ListenTarget(ctx, func(event any) {
		say := ""
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			say = "console: " + string(e.Type)
		case *runtime.EventExceptionThrown:
			say = "exception: " + e.ExceptionDetails.Text
		case *log.EventEntryAdded:
			say = "log: " + e.Entry.Text
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "file://") {
				say = "request: " + e.Request.URL
			}
		}
		if say != "" {
			select {
			case seen <- say:
			default:
			}
		}
	})
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	err = chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable(), emulation.SetScriptExecutionDisabled(!scripts), chromedp.Navigate("file://"+abs), chromedp.WaitReady("main"))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, func() []string {
		for {
			select {
			case s := <-seen:
				complaints = append(complaints, s)
			default:
				return complaints
			}
		}
	}
}

// evaluate runs an expression in the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	var v T
	if err := chromedp.Run(ctx, chromedp.Evaluate(expression, &v)); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// seen shows the page in a window of the width, in light or dark, all of it laid out: a browser leaves out what is far away.
func seen(t *testing.T, ctx context.Context, scheme string, width int64) {
	t.Helper()
	media := emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 1200), media); err != nil {
		t.Fatal(err)
	}
	evaluate[any](t, ctx, `for (const s of document.querySelectorAll("main > section")) s.style.contentVisibility = "visible"; null`)
}

// made are the folders that several tests look at, by what they hold: each is written once.
var made struct {
	sync.Mutex
	dir     string
	folders map[string]func() error
}

// once is a folder that write fills, for the first test that asks for it.
func once(t *testing.T, holds string, write func(dir string) error) string {
	t.Helper()
	needBrowser(t)
	made.Lock()
	if made.dir == "" {
		dir, err := os.MkdirTemp("", "pages")
		if err != nil {
			t.Fatal(err)
		}
		made.dir, made.folders = dir, map[string]func() error{}
	}
	dir := filepath.Join(made.dir, fmt.Sprintf("%x", sha256.Sum256([]byte(holds))))
	if made.folders[dir] == nil {
		made.folders[dir] = sync.OnceValue(func() error { return write(dir) })
	}
	fill := made.folders[dir]
	made.Unlock()
	if err := fill(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// folderOf is what explain writes with --out for a command line.
func folderOf(t *testing.T, codes []int, args ...string) string {
	t.Helper()
	return once(t, strings.Join(args, "\x00"), func(dir string) error {
		if _, errs, code := explaintest.Run(t, append(slices.Clone(args), "--quiet", "--out", dir)...); !slices.Contains(codes, code) {
			return fmt.Errorf("exit %d: %s", code, errs)
		}
		return nil
	})
}

// pageOf is the page of the report of a trace and its JSON.
func pageOf(t *testing.T, trace string, args ...string) (string, *report.Report) {
	t.Helper()
	dir := folderOf(t, []int{cmdenv.OK}, append([]string{trace}, args...)...)
	r, err := report.Read(bytes.NewReader(explaintest.Read(t, filepath.Join(dir, "report.json"))))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "report.html"), r
}

// comparisonPage is the page of a comparison and its JSON.
func comparisonPage(t *testing.T, base, head string) (string, *comparison.Comparison) {
	t.Helper()
	dir := folderOf(t, []int{cmdenv.OK, cmdenv.Fail, cmdenv.Inconclusive}, "diff", base, head)
	c, err := comparison.Read(bytes.NewReader(explaintest.Read(t, filepath.Join(dir, "comparison.json"))))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "diff.html"), c
}

// comparisonOf compares a trace with itself, its kernels made half as slow again.
func comparisonOf(t *testing.T, trace string) (string, *comparison.Comparison) {
	t.Helper()
	return comparisonPage(t, trace, slower(t, trace))
}

// slower is a copy of a trace with slower kernels.
func slower(t *testing.T, trace string) string {
	t.Helper()
	dir := once(t, "slower\x00"+trace, func(dir string) error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return tracetest.Rewrite(trace, filepath.Join(dir, "head.sqlite"), tracetest.ScaleKernels(func(string) bool { return true }, 1.5))
	})
	return filepath.Join(dir, "head.sqlite")
}
