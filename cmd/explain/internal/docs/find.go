package docs

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/policy"
)

// Statistics of a metric, as they follow its id.
var Statistics = []string{"min", "p50", "p90", "p99", "max", "mean", "stddev"}

// MetricsPage is the page of entries that are metrics: explain doc metrics prints all of them.
const MetricsPage = "metrics"

// Entry is one place where a name is explained.
type Entry struct {
	Page string // that holds it
	Text string // markdown of one or a few lines
}

// maxEntries bounds an answer: a common word is in the first columns of many tables.
const maxEntries = 6

// Find explains a name: of a page, a metric with or without a statistic and labels, a finding, a preset, a rule
// of the default one, a table or column of the report, a word in a table of any page, a CUDA call. It ignores case. It returns nil if nothing explains
// the name.
func Find(name string) []Entry {
	name = position.ReplaceAllString(printed.ReplaceAllString(strings.TrimSpace(name), ""), "#N")
	var list []Entry
	if m, statistic, ok := Metric(name); ok {
		list = append(list, Entry{MetricsPage, MetricText(m, statistic)})
	}
	defined := regexp.MustCompile(`[.:] \*\*` + regexp.QuoteMeta(name) + `\*\*: `) // a class of time, not a finding
	if section, page, ok := analyze.FindingPage(name); ok && !defined.MatchString(page) {
		list = append(list, Entry{section, findingText(section, name)})
	}
	for _, p := range Pages() {
		if strings.EqualFold(p.Title, name) {
			list = append(list, Entry{p.Name, "a page: explain doc " + p.Name})
		}
	}
	if text, ok := policy.PresetText(strings.ToLower(name)); ok {
		list = append(list, Entry{"policy", presetText(text)})
	}
	list = append(list, index()[strings.ToLower(name)]...)
	for _, rule := range policy.DefaultRules() {
		if strings.EqualFold(rule.ID, name) {
			for _, r := range rule.Each() {
				list = append(list, Entry{"policy", "rule of the preset llm-serving: " + r.Selects() + " " + r.Does()})
			}
		}
	}
	list = append(list, columns()[strings.ToLower(name)]...)
	if text := callText(name); text != "" {
		list = append(list, Entry{"diff", text})
	}
	if code, ok := strings.CutPrefix(strings.ToLower(name), "exit "); ok && len(list) == 0 {
		return Find(strings.TrimPrefix(code, "code "))
	}
	if known := loosely()[squeezed(name)]; len(list) == 0 && known != name && known != "" { // idle_sync, read-backs
		return Find(known)
	}
	if one, ok := strings.CutSuffix(name, "s"); ok && len(list) == 0 && len(one) > 3 { // waivers
		return Find(one)
	}
	for rest := name; len(list) == 0; { // transfer in SendRecv, Peak TFLOPs of device 0
		at := strings.LastIndex(rest, " ")
		if at < 0 || rest != name && !strings.Contains(rest[:at], " ") || rest == name && plainWord(name[at+1:]) {
			break
		}
		rest = rest[:at]
		list = index()[strings.ToLower(rest)]
	}
	return list[:min(len(list), maxEntries)]
}

// plainWord reports whether a word is no name in a capture and no number: of lower-case letters alone.
func plainWord(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLower(r) })
}

// printed are what stands beside a label: the mark of a part of another row, the unit or the number of rows in brackets.
var printed = regexp.MustCompile(`^└─? | \((?:\d+|%|[a-zµA-Z]{1,5}|[a-zA-Z]{0,5}/[a-zA-Z]{1,4})\)$`)

// position is one place of a step, such as #5.
var position = regexp.MustCompile(`^#\d+$`)

var metrics = sync.OnceValue(analyze.Metrics)

// Metric returns the metric of an id, which may be followed by a statistic and labels.
func Metric(name string) (m report.MetricDef, statistic string, found bool) {
	name, _, _ = strings.Cut(name, "{")
	of := func(id string) *report.MetricDef {
		return lists.Find(metrics(), func(m *report.MetricDef) bool { return m.ID == id })
	}
	info := of(name)
	if dot := strings.LastIndexByte(name, '.'); info == nil && dot >= 0 && slices.Contains(Statistics, name[dot+1:]) {
		info, statistic = of(name[:dot]), name[dot+1:]
	}
	if info == nil {
		return m, "", false
	}
	return *info, statistic, true
}

// MetricText describes a metric in a few lines.
func MetricText(m report.MetricDef, statistic string) string {
	labels := lists.Map(m.Labels, func(l string) string { return cmp.Or(l, "–") })
	scale := m.Scale
	if m.Stats {
		scale += " with statistics"
	}
	id := m.ID
	if statistic != "" {
		id += "." + statistic
	}
	text := id + "\n" + Wrap(m.Meaning, 96, "  ") + "\n"
	if statistic != "" {
		for _, e := range index()[statistic] {
			if e.Page == "statistics" {
				text += "  " + statistic + ": " + e.Text + "\n"
			}
		}
	}
	return text + fmt.Sprintf("  unit %s, better %s, %s, %s, %s; labels %s; section %s\n", m.Unit, m.Better, m.Assume, scale,
		m.Lifecycle, strings.Join(labels, " | "), strings.Join(m.Sections, ", "))
}

// findingHead parts when a finding appears, and the other findings of the same item, from the text about it.
var findingHead = regexp.MustCompile(`^(\([^)]*\))?(?:,? ?(?:and )?\*\*\w+\*\*(?: \([^)]*\))?)*[.:] (.+)`)

// findingText is what the page of a section says of a finding: the item that begins with its name.
func findingText(section, id string) string {
	p, _ := ByName(section)
	_, text, _ := strings.Cut(p.Text, "**"+id+"**")
	end := regexp.MustCompile(`\n(- |\n|#)`).FindStringIndex(text)
	if end != nil {
		text = text[:end[0]]
	}
	m := findingHead.FindStringSubmatch(strings.Join(strings.Fields(text), " "))
	if m == nil {
		return "finding of section " + section + ": " + text
	}
	return strings.TrimSpace("finding of section "+section+" "+m[1]) + ". " + strings.ToUpper(m[2][:1]) + m[2][1:]
}

// cudaCall is the name of a function of the CUDA runtime (cudaFree) or of the driver (cuLaunchKernel).
var cudaCall = regexp.MustCompile(`^(cuda|cu)[A-Z][A-Za-z0-9_]+$`)

// callKinds are kinds of CUDA calls by words in their names, the first that matches: what they do, and the section that
// shows them.
var callKinds = []struct{ words, what, section string }{
	{"Synchronize", ", in which the host waits for the GPU", "sync"},
	{"Memcpy Memset", " that copies or fills memory", "memcpy"},
	{"GraphLaunch", " that starts a CUDA graph", "graphs"},
	{"Launch", " that starts a kernel", "launches"},
	{"Malloc Alloc Free", " that allocates or frees memory", "gpu_memory"},
	{"cu", "", "launches"},
}

// callText returns the kind of a CUDA call, and the sections that show such calls; empty for any other name.
func callText(name string) string {
	m := cudaCall.FindStringSubmatch(name)
	if m == nil {
		return ""
	}
	api := "the CUDA driver"
	if m[1] == "cuda" {
		api = "the CUDA runtime"
	}
	i := slices.IndexFunc(callKinds, func(kind struct{ words, what, section string }) bool {
		return slices.ContainsFunc(strings.Fields(kind.words), func(w string) bool { return strings.Contains(name, w) })
	})
	kind := callKinds[i]
	return "by its name a call of " + api + kind.what + ", described in NVIDIA's documentation. Section " + kind.section +
		" of the report (explain doc " + kind.section + ") shows such calls, whatif those worth removing, and a comparison those " +
		"that changed, in the table of host calls"
}

var firstComment = regexp.MustCompile(`^(#.*\n)*`)

// presetText returns the comment at the beginning of a preset's file.
func presetText(text string) string {
	comment := strings.ReplaceAll(firstComment.FindString(text), "#", "")
	return "preset of a policy, which explain policy show prints: " + strings.Join(strings.Fields(comment), " ")
}

// cell matches a name in the first column of a table.
var cell = regexp.MustCompile("`([^`]+)`")

// index is every row of a table of a page, by the names in its first cell, in lower case; of several rows with a name,
// those with fewer others come first.
var index = sync.OnceValue(func() map[string][]Entry {
	rows := map[string][]Entry{}
	named := map[Entry]int{}
	for _, p := range passages() {
		first, rest, ok := strings.Cut(p.text, cellEnd)
		if !p.row || !ok {
			continue
		}
		entry := Entry{p.page, strings.TrimLeft(rest, cellEnd)}
		for _, m := range cell.FindAllStringSubmatch(first, -1) {
			name := strings.ToLower(m[1])
			rows[name] = append(rows[name], entry)
			named[entry]++
		}
	}
	for _, list := range rows {
		lists.Sort(list, func(a, b Entry) int { return named[a] - named[b] })
	}
	return rows
})

// loosely are the names of findings and of the index by their letters and digits.
var loosely = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range append(analyze.FindingIDs(), slices.Sorted(maps.Keys(index()))...) {
		names[squeezed(name)] = name
	}
	delete(names, "")
	return names
})

// squeezed is the letters and digits of a name, in lower case: "idle: sync", idle_sync and "Idle sync" are one.
func squeezed(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

var word = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// Words are the names that tables of pages explain (reason codes, warnings, classes, words of schemas), sorted: for
// completion.
func Words() []string {
	names := slices.Sorted(maps.Keys(index()))
	return slices.DeleteFunc(names, func(name string) bool { return !word.MatchString(name) })
}

// columns are the tables and columns of the report, by their ids, titles and names in files, in lower case.
var columns = sync.OnceValue(func() map[string][]Entry {
	places := map[string][]Entry{}
	add := func(section, text string, names ...string) {
		for i, n := range names {
			names[i] = strings.ToLower(n)
		}
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			places[n] = append(places[n], Entry{section, text})
		}
	}
	for _, s := range append(analyze.Sections(), analyze.RunSection()) {
		for _, t := range s.Tables {
			names := []string{t.ID, t.Title}
			if t.File != "" {
				names = append(names, t.File, "tables/"+t.File)
			}
			add(s.ID, fmt.Sprintf("table %s (%s) of section %s", t.ID, t.Title, s.ID), names...)
			for _, c := range t.Columns {
				names := []string{c.ID, c.Title}
				for _, v := range c.CSV {
					names = append(names, v.Name)
				}
				text := fmt.Sprintf("column %q (%s) of table %s in section %s", c.Title, c.ID, t.ID, s.ID)
				if c.Unit != "" {
					text += ", in " + c.Unit
				}
				add(s.ID, text, names...)
			}
		}
	}
	return places
})

// Wrap breaks text into lines of at most width runes, each with an indent.
func Wrap(text string, width int, indent string) string {
	lines := wording.Wrap(text, width-len(indent))
	return indent + strings.Join(lines, "\n"+indent)
}
