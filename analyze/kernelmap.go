package analyze

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// KernelMap says the category of kernels by their names, as --kernel-map does. The first pattern that matches decides;
// a kernel that none matches has the category that its name tells.
type KernelMap struct {
	file report.MapFile
	rows []kernelRow
}

type kernelRow struct {
	pattern  pattern
	category kernelname.Category
}

// ParseKernelMap reads lines of "pattern: category" as YAML, or of "pattern,category" where the file's name ends in
// .csv. A pattern is a substring of the demangled name, whose case does not matter, or re:REGEX. Errors wrap
// ErrOptions.
func ParseKernelMap(name string, text []byte) (*KernelMap, error) {
	read := yamlPairs
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		read = csvPairs
	}
	pairs, err := read(string(text))
	m := &KernelMap{file: mapFile("kernel", name, text)}
	for _, p := range pairs {
		if err != nil {
			break
		}
		err = m.add(p[0], p[1])
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: kernel map %s: %w", ErrOptions, name, err)
	case len(m.rows) == 0:
		return nil, fmt.Errorf("%w: kernel map %s has no line such as \"my_router: moe_route\"", ErrOptions, name)
	}
	return m, nil
}

// mapFile is what a report says of the file.
func mapFile(kind, name string, text []byte) report.MapFile {
	sum := sha256.Sum256(text)
	return report.MapFile{Kind: kind, Name: name, Hash: hex.EncodeToString(sum[:8])}
}

func (m *KernelMap) add(text, category string) error {
	p, err := parsePattern(text)
	if err != nil {
		return err
	}
	c := kernelname.Category(strings.TrimSpace(category))
	if !slices.Contains(kernelname.Categories, c) {
		names := lists.Map(kernelname.Categories, func(k kernelname.Category) string { return string(k) })
		return fmt.Errorf("%s: there is no category %q; the categories are %s", text, c, strings.Join(names, ", "))
	}
	m.rows = append(m.rows, kernelRow{p, c})
	return nil
}

func yamlPairs(text string) ([][2]string, error) {
	var list yaml.MapSlice
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("expected lines of \"pattern: category\": %s", yaml.FormatError(err, false, true))
	}
	pairs := make([][2]string, len(list))
	for i, item := range list {
		key, isText := item.Key.(string)
		value, ok := item.Value.(string)
		if !isText || !ok {
			return nil, fmt.Errorf("%v: expected a pattern and one category; quote what YAML reads as a number", item.Key)
		}
		pairs[i] = [2]string{key, value}
	}
	return pairs, nil
}

func csvPairs(text string) ([][2]string, error) {
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = 2, '#', true
	records, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("expected lines of \"pattern,category\": %w", err)
	}
	var pairs [][2]string
	for i, rec := range records {
		if i > 0 || rec[0] != "pattern" || rec[1] != "category" {
			pairs = append(pairs, [2]string{rec[0], rec[1]})
		}
	}
	return pairs, nil
}

// classify asks the map before the name; the map may be nil.
func (m *KernelMap) classify(name string) kernelname.Info {
	if m != nil {
		lower := strings.ToLower(name)
		if row := lists.Find(m.rows, func(r *kernelRow) bool { return r.pattern.match(name, lower) }); row != nil {
			return kernelname.ClassifyAs(name, row.category)
		}
	}
	return kernelname.Classify(name)
}
