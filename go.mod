module github.com/nsys-llm/explain

go 1.26.0

require (
	github.com/chromedp/cdproto v0.0.0-20250724212937-08a3db8b4327 // tests: what chromedp asks a browser
	github.com/chromedp/chromedp v0.14.2 // tests: report.html in a real browser
	github.com/goccy/go-yaml v1.19.2 // policies with the line and column of what is wrong; files about a capture
	github.com/google/go-cmp v0.7.0 // tests: differences that people can read
	github.com/google/go-github/v62 v62.0.0 // comments and artifacts of pull requests
	github.com/klauspost/compress v1.20.3 // traces compressed with zstd
	github.com/lib/pq v1.12.3 // history in PostgreSQL
	github.com/mattn/go-isatty v0.0.24 // colour and progress on terminals alone
	github.com/rogpeppe/go-internal v1.16.0 // tests: the command line as scripts (testscript)
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // tests: what is written keeps the published schemas
	github.com/sethvargo/go-githubactions v1.4.0 // inputs, outputs and annotations of GitHub Actions
	github.com/spf13/cobra v1.10.2 // commands and their help
	github.com/spf13/pflag v1.0.9 // flags that were given, told from defaults
	github.com/yuin/goldmark v1.8.7 // tests: the Markdown is what GitHub makes of it
	golang.org/x/net v0.62.0 // tests: the HTML is well formed
	golang.org/x/sync v0.24.0 // work side by side that ends at the first error
	golang.org/x/sys v0.49.0 // memory maps, free space, process control
	golang.org/x/term v0.47.0 // width of the terminal
	golang.org/x/text v0.43.0 // width of characters in terminals; UTF-16 traces
	modernc.org/sqlite v1.60.1 // SQLite without C: what the page reader leaves to SQL, and scrubbed copies
	pgregory.net/rapid v1.3.0 // tests: properties of random inputs
)

require (
	github.com/chromedp/sysutil v1.1.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/go-json-experiment/json v0.0.0-20250725192818-e39067aee2d2 // indirect
	github.com/gobwas/httphead v0.1.0 // indirect
	github.com/gobwas/pool v0.2.1 // indirect
	github.com/gobwas/ws v1.4.0 // indirect
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/tools v0.51.0 // indirect
	modernc.org/libc v1.77.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
