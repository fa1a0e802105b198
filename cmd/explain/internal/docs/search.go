package docs

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// passage is a paragraph, a list item or a table row of a page.
type passage struct {
	page, heading, text string
	row                 bool     // of a table: its cells, with cellEnd between
	words               []string // of the text, in lower case, plurals as singulars
	marked              []string // what the text sets in bold or as code, in lower case
}

// cellEnd ends a cell in the text of a row.
const cellEnd = "; "

// passages are those of all pages, in the order of the pages.
var passages = sync.OnceValue(func() []passage {
	var list []passage
	for _, p := range Pages() {
		heading, fenced := "", false
		var text []string
		end := func() {
			if joined := strings.Join(text, " "); joined != "" {
				list = append(list, newPassage(p.Name, heading, joined))
			}
			text = nil
		}
		for line := range strings.Lines(p.Text) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				end()
				fenced = !fenced
			case strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "|:-"): // the row above is the table's header
				if last := len(list) - 1; !fenced && last >= 0 && list[last].row {
					list = list[:last]
				}
			case fenced || line == "":
				end()
			case strings.HasPrefix(line, "#"):
				end()
				heading = strings.TrimLeft(line, "# ")
			case strings.HasPrefix(line, "| "):
				end()
				row := newPassage(p.Name, heading, strings.ReplaceAll(strings.Trim(line, "| "), " | ", cellEnd))
				row.row = true
				list = append(list, row)
			case strings.HasPrefix(line, "- "):
				end()
				text = []string{strings.TrimPrefix(line, "- ")}
			default:
				text = append(text, line)
			}
		}
		end()
	}
	return list
})

var markup = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*")

func newPassage(page, heading, text string) passage {
	p := passage{page: page, heading: heading, text: text, words: withParts(wordsOf(text))}
	for _, m := range markup.FindAllStringSubmatch(text, -1) {
		p.marked = append(p.marked, strings.ToLower(m[1]+m[2]))
	}
	return p
}

// wordsOf are the words of a text in lower case, plurals as singulars. An id is a word as a whole.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-%", r)
	})
	for i, w := range words {
		w = strings.Trim(w, ".-")
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = strings.TrimSuffix(w, "s")
		}
		words[i] = w
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// withParts are words, and the parts of those that are ids: of serve.tpot and rank_straggler each.
func withParts(words []string) []string {
	for _, w := range words {
		if parts := strings.FieldsFunc(w, func(r rune) bool { return strings.ContainsRune("._-", r) }); len(parts) > 1 {
			words = append(words, wordsOf(strings.Join(parts, " "))...)
		}
	}
	return words
}

// holds reports whether all asked words are among the words.
func holds(words, asked []string) bool {
	return !slices.ContainsFunc(asked, func(w string) bool { return !slices.Contains(words, w) })
}

// Vocabulary is the words of all pages, in lower case, plurals as singulars.
var Vocabulary = sync.OnceValue(func() (list []string) {
	for _, p := range passages() {
		list = append(list, p.words...)
	}
	slices.Sort(list)
	return slices.Compact(list)
})

// SearchMetrics returns the ids of the metrics whose id or meaning contains all words.
func SearchMetrics(words string) []string {
	var ids []string
	asked := wordsOf(words)
	for _, m := range metrics() {
		if len(asked) > 0 && holds(withParts(wordsOf(m.ID+" "+m.Meaning)), asked) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// section is the text below the first heading of a page that reads so.
func section(page, heading string) string {
	p, _ := ByName(page)
	_, text, _ := strings.Cut(p.Text, "# "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n#")
	return heading + "\n\n" + strings.TrimSpace(text)
}

// Search returns the passages of all pages that contain all words, and the first passage below a heading that does; a
// section whose heading is these words it returns as a whole. Passages that mark the words as a term come first, then
// those below such a heading; it returns at most as many as Find.
func Search(name string) []Entry {
	asked := wordsOf(name)
	if len(asked) == 0 {
		return nil
	}
	type hit struct {
		rank int
		Entry
	}
	var hits []hit
	last, whole := "", ""
	phrase := " " + strings.Join(asked, " ") + " "
	for _, p := range passages() {
		below := holds(wordsOf(p.heading), asked)
		place := p.page + "#" + p.heading
		if !holds(p.words, asked) && (!below || place == last) || place == whole {
			continue
		}
		last = place
		if slices.Equal(wordsOf(p.heading), asked) {
			whole = place
			hits = append(hits, hit{0, Entry{p.page, section(p.page, p.heading)}})
			continue
		}
		rank := 3
		switch {
		case slices.Contains(p.marked, strings.ToLower(strings.TrimSpace(name))):
			rank = 0
		case below:
			rank = 1
		case strings.Contains(" "+strings.Join(p.words, " ")+" ", phrase):
			rank = 2
		}
		hits = append(hits, hit{rank, Entry{p.page, p.text}})
	}
	for _, m := range metrics() {
		if holds(withParts(wordsOf(m.ID)), asked) {
			hits = append(hits, hit{1, Entry{MetricsPage, "metric " + m.ID + ": " + m.Meaning}})
		}
	}
	lists.Sort(hits, func(a, b hit) int { return a.rank - b.rank })
	if len(hits) == 0 {
		return nameKind(name)
	}
	return lists.Map(hits[:min(len(hits), maxEntries)], func(h hit) Entry { return h.Entry })
}

// nameKind is what a name in a capture tells by itself; nothing for words, for names that do not tell, and for what
// looks like a metric or a finding with a letter wrong.
func nameKind(name string) []Entry {
	small := strings.TrimLeftFunc(name, unicode.IsUpper)
	if !strings.ContainsAny(name, "_:<0123456789") && small == strings.ToLower(small) {
		return nil
	}
	ids := append(analyze.FindingIDs(), lists.Map(metrics(), func(m report.MetricDef) string { return m.ID })...)
	if slices.ContainsFunc(ids, func(id string) bool { return wording.Edits(name, id) <= min(2, len(name)/4) }) {
		return nil
	}
	page, text := analyze.NameKind(name)
	if text == "" {
		return nil
	}
	return []Entry{{page, text}}
}
