package browser

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// commentStyle makes the comment look as GitHub shows one.
const commentStyle = `<style>
:root { color-scheme: light dark }
body { margin: 0; padding: 24px; width: 832px; box-sizing: border-box; font: 14px/1.5 system-ui, sans-serif; background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3) }
main { border: 1px solid light-dark(#d1d9e0, #3d444d); border-radius: 6px; padding: 4px 16px 12px }
h3 { font-size: 18px; margin: 12px 0 } p, details { margin: 10px 0 }
code { background: light-dark(#eff1f3, #262c36); padding: 2px 5px; border-radius: 5px; font: 12px ui-monospace, monospace }
table { border-collapse: collapse } td, th { border: 1px solid light-dark(#d1d9e0, #3d444d); padding: 4px 10px } th { font-weight: 600 }
</style>`

// signs of a comment that few fonts of a server have, and what is drawn for them.
var signs = strings.NewReplacer("❌", `<span style="color:#d1242f">✗</span>`, "🟥", `<span style="color:#d1242f">■</span>`, "🟩", `<span style="color:#1a7f37">■</span>`, "🟨", `<span style="color:#9a6700">■</span>`, "⬜", "□")

// TestPictures makes the pictures of examples/pictures from the pair of testdata, light and dark, where EXPLAIN_PICTURES
// names a folder: EXPLAIN_PICTURES=examples/pictures go test ./cmd/explain/internal/browser -run TestPictures.
func TestPictures(t *testing.T) {
	folder := os.Getenv("EXPLAIN_PICTURES")
	if folder == "" {
		t.Skip("EXPLAIN_PICTURES names no folder")
	}
	dir := explaintest.Root(folder)
	made := t.TempDir()
	t.Chdir(made) // the comment names the files as they were named here
	for _, args := range [][]string{{"demo", "--out", "demo"}, {explaintest.Testdata("head.sqlite"), "--quiet", "--out", "report"}} {
		if _, errs, code := explaintest.Run(t, args...); code != cmdenv.OK {
			t.Fatalf("exit %d: %s", code, errs)
		}
	}
	var body bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert(explaintest.Read(t, filepath.Join(made, "demo/gate/comment.md")), &body); err != nil {
		t.Fatal(err)
	}
	shown := signs.Replace(body.String())
	explaintest.Put(t, filepath.Join(made, "comment.html"), []byte("<!doctype html><meta charset=utf-8>"+commentStyle+"<main>"+shown+"</main>"), 0o644)
	for name, file := range map[string]string{"comment": "comment.html", "diff": "demo/comparison/diff.html", "report": "report/report.html"} {
		for _, scheme := range []string{"light", "dark"} {
			ctx, _ := open(t, filepath.Join(made, file), true)
			seen(t, ctx, scheme, 1100)
			if name == "comment" {
				seen(t, ctx, scheme, 832)
			}
			explaintest.Put(t, filepath.Join(dir, name+"-"+scheme+".png"), firstScreen(t, ctx), 0o644)
		}
	}
}

// firstScreen is a picture of the top of a page: all of a short one, 900 pixels of a long one.
func firstScreen(t *testing.T, ctx context.Context) (png []byte) {
	t.Helper()
	size := evaluate[[]float64](t, ctx, "[innerWidth, Math.min(900, document.documentElement.getBoundingClientRect().height)]")
	clip := &page.Viewport{Width: size[0], Height: size[1], Scale: 1}
	take := chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithClip(clip).WithOptimizeForSpeed(false).Do(ctx)
		return err
	})
	if err := chromedp.Run(ctx, take); err != nil || len(png) < 1000 {
		t.Fatalf("%v, %d bytes", err, len(png))
	}
	return png
}
