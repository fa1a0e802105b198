package perfopt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Context says how the run counted the context of decode.
type Context struct {
	Mode  string // auto, fixed, max; empty if not stated
	Fixed int64  // tokens
}

func isEnv(_ string, head []byte) bool {
	k := jsonKeys(head)
	return k["gpu"] && (k["cuda"] || k["torch"]) && len(k) <= 16
}

func (d *Data) readEnv(in *file.Input, b []byte) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil {
		return d.bad(in)
	}
	in.Tally.Records++
	text := func(key string, form *regexp.Regexp) string {
		var s string
		if raw, ok := m[key]; !ok || json.Unmarshal(raw, &s) != nil || !form.MatchString(s) {
			return ""
		}
		return s
	}
	gpu := text("gpu", gpuName())
	cuda := text("cuda", version())
	var packages []string
	for _, key := range []string{"torch", "transformers"} {
		if v := text(key, version()); v != "" {
			packages = append(packages, key+" "+v)
		}
	}
	if gpu == "" && cuda == "" && len(packages) == 0 {
		in.Tally.Known++
		return nil
	}
	in.Tally.Understood++
	d.GPU = cmp.Or(d.GPU, gpu)
	if d.Packages == "" && d.CUDA == "" {
		d.Packages, d.CUDA = strings.Join(packages, ", "), cuda
	}
	return nil
}

// topKeys are the keys at the left margin of a YAML mapping of which only the start was read.
func topKeys(head []byte) map[string]bool {
	keys := map[string]bool{}
	for _, line := range bytes.Split(head, []byte("\n")) {
		if m := topKey().FindSubmatch(line); m != nil {
			keys[string(m[1])] = true
		}
	}
	return keys
}

var topKey = pattern.New(`^([A-Za-z_][A-Za-z0-9_]{0,40}):(?:\s|$)`)

func isInputs(_ string, head []byte) bool {
	k := topKeys(head)
	return k["count"] && (k["inputs"] || k["images"])
}

var inputCount = pattern.New(`^count: ([0-9]{1,9})\s*$`)

// readInputs takes only the number of inputs: the rest are paths and command lines.
func (d *Data) readInputs(in *file.Input, b []byte) error {
	for _, line := range bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n")) {
		in.Tally.Records++
		if m := inputCount().FindSubmatch(line); m != nil {
			in.Tally.Understood++
			if n, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && d.Inputs == 0 {
				d.Inputs = n
			}
			continue
		}
		in.Tally.Known++
	}
	return nil
}

func isConfig(_ string, head []byte) bool {
	k := topKeys(head)
	switch {
	case k["model"] && (k["infer"] || k["pipeline"] || k["dataset"] && k["device"]):
		return true
	}
	return k["runner"] && k["stage1_runner"]
}

// Bounds of a configuration, so that no file can make the parser hang: real ones have 3 kB and nest six deep.
const (
	maxConfig = 256 << 10
	maxDepth  = 32
)

// shallow reports whether a YAML text nests little enough to be parsed, and has no anchors, with which a few lines
// could expand without limit.
func shallow(b []byte) bool {
	if len(b) > maxConfig {
		return false
	}
	depth := 0
	for _, c := range b {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	for _, line := range bytes.Split(b, []byte("\n")) {
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		rest := line[indent:]
		for n := 0; bytes.HasPrefix(rest, []byte("- ")) || bytes.HasPrefix(rest, []byte("? ")); n++ {
			if rest = bytes.TrimLeft(rest[2:], " "); n > 4 {
				return false
			}
		}
		if indent > 4*maxDepth || bytes.Contains(line, []byte(": &")) || bytes.Contains(line, []byte(": *")) ||
			bytes.HasPrefix(rest, []byte("&")) || bytes.HasPrefix(rest, []byte("*")) {
			return false
		}
	}
	return true
}

func (d *Data) readConfig(in *file.Input, b []byte) error {
	var top map[string]any
	if !shallow(b) || yaml.Unmarshal(b, &top) != nil {
		return d.bad(in)
	}
	in.Tally.Records++
	understood := false
	text := func(keys ...string) string {
		var at any = top
		for _, k := range keys {
			m, ok := at.(map[string]any)
			if !ok {
				return ""
			}
			at = m[k]
		}
		s, _ := at.(string)
		return s
	}
	if name := modelName(text("model", "name"), text("model", "path")); name != "" && d.Model == "" {
		d.Model, understood = name, true
	}
	if t := dtypes[strings.ToLower(text("model", "dtype"))]; t != "" && d.DType == "" {
		d.DType, understood = t, true
	}
	if infer, ok := top["infer"].(map[string]any); ok && d.Context.Mode == "" {
		switch mode, _ := infer["context_len_mode"].(string); mode {
		case "auto", "fixed", "max":
			d.Context.Mode, understood = mode, true
		}
		if n, ok := infer["context_len_fixed"].(uint64); ok && n < 1<<30 {
			d.Context.Fixed = int64(n)
		}
	}
	if understood {
		in.Tally.Understood++
	} else {
		in.Tally.Known++
	}
	return nil
}

var hubFolder = pattern.New(`/models--([A-Za-z0-9._-]{1,60})--([A-Za-z0-9._-]{1,90})/`)

// modelName is the name of the model in the configuration, or the last part of its path: never a user's folder.
func modelName(name, where string) string {
	if modelID().MatchString(name) {
		return name
	}
	if m := hubFolder().FindStringSubmatch(where); m != nil {
		return m[1] + "/" + m[2]
	}
	if base := path.Base(strings.TrimRight(where, "/")); where != "" && modelID().MatchString(base) && base != "." {
		return base
	}
	return ""
}
