package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const canary = "hunter2-jane-hf_AbCdEf"

// plantSecrets copies the evidence of testdata with a secret in every field that holds text, and in fields, keys and lines
// that no reader knows. What tells a row's kind stays in every other row, so that all code paths run.
func plantSecrets(t *testing.T) string {
	t.Helper()
	from, to := "../../testdata/evidence", t.TempDir()
	for _, kind := range []string{"session", "perfopt"} {
		err := filepath.WalkDir(filepath.Join(from, kind), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			put(t, filepath.Join(to, name), plant(t, name, string(read(t, path))), 0o644)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func plant(t *testing.T, name, content string) []byte {
	t.Helper()
	switch filepath.Ext(name) {
	case ".csv":
		return plantCSV(t, content)
	case ".json":
		content = strings.Replace(content, "{", `{"`+canary+`": "`+canary+`",`, 1)
		if strings.Contains(name, "metrics") || strings.Contains(name, "env") || strings.Contains(name, "report") || strings.Contains(name, "metadata") || strings.Contains(name, "batch") || strings.Contains(name, "preemption_s") {
			return []byte(strings.NewReplacer(`"LLM@prefill::attention"`, `"`+canary+`"`, `"4.46.3"`, `"`+canary+`"`, `"SWAP"`, `"`+canary+`"`).Replace(content))
		}
		return []byte(strings.Replace(content, `"`+canary+`": "`+canary+`",`, "", 1)) // told by all of their keys
	case ".yaml":
		return []byte(strings.NewReplacer("images/a.png", "/home/jane/"+canary, "${hydra:runtime.cwd}/models", "/home/jane/"+canary, "OmniDocBench", canary).Replace(content) + canary + ": /home/jane/" + canary + "\n")
	case ".md":
		return []byte(canary + "\n" + strings.ReplaceAll(content, "my custom op", canary) + "\n/home/jane/" + canary + "\n")
	case ".txt":
		return []byte(content + canary + ": /home/jane\n")
	}
	return []byte(content)
}

func plantCSV(t *testing.T, content string) []byte {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows[0] = append(rows[0], canary)
	for i, row := range rows[1:] {
		for j, cell := range row {
			if _, err := strconv.ParseFloat(cell, 64); err != nil && i%2 == 1 {
				row[j] = "/home/jane/" + canary
			}
		}
		rows[i+1] = append(row, canary)
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), canary+"\n"...)
}

// TestSessionSecretsStayInside looks for the planted secrets in everything that explain writes about profiler sessions and
// llm-perf-opt's artifacts, alone and beside a trace.
func TestSessionSecretsStayInside(t *testing.T) {
	t.Parallel()
	folder := plantSecrets(t)
	beside := explainTrace(t, "../../testdata/tiny.sqlite", "--evidence", folder)
	for what, files := range map[string]map[string]string{"alone": explainTrace(t, folder), "beside a trace": beside} {
		understood := 0
		for name, content := range files {
			for _, secret := range []string{"hunter2", "jane", "hf_AbC", folder} {
				if at := strings.Index(content, secret); at >= 0 {
					t.Errorf("%s: %s leaks %q: …%q…", what, name, secret, content[max(0, at-80):min(len(content), at+40)])
				}
			}
			understood += strings.Count(content, "moe.coverage")
		}
		if understood == 0 {
			t.Errorf("%s: nothing was read", what)
		}
	}
	var out bytes.Buffer
	if code := run(context.Background(), []string{folder, "--format", "json"}, &env{Out: &out, Err: &out, Getenv: os.Getenv}); code != exitOK || strings.Contains(out.String(), "hunter2") {
		t.Errorf("exit %d", code)
	}
}
