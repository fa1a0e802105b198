package load

import (
	"strings"
	"testing"
)

func TestDatasetForms(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		text0  string
		tokens int
		n      int
	}{
		"prompts":            {"{\"prompt\":\"a\",\"max_tokens\":7}\n\n{\"prompt\":\"b\"}\n", "a", 7, 2},
		"no end of line":     {"\ufeff{\"prompt\":\"a\"}", "a", defaultOutput, 1},
		"messages":           {`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"max_tokens":3}`, "s\nu", 3, 1},
		"parts of a message": {`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, " ", defaultOutput, 1},
		"ShareGPT":           {`[{"id":"1","conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"12345678"}]},{"conversations":[{"from":"gpt","value":"x"}]},{"conversations":[]}]`, "q", 2, 1},
		"a list with a mark": {"\ufeff [{\"prompt\":\"a\"}]", "a", defaultOutput, 1},
		"ShareGPT in lines":  {`{"conversations":[{"from":"system","value":"s"},{"from":"user","value":"q"}]}`, "q", defaultOutput, 1},
	} {
		d, err := parseDataset(strings.NewReader(c.text))
		if err != nil || len(d.list) != c.n || d.at(0).text != c.text0 || d.at(c.n).maxTokens != c.tokens {
			t.Errorf("%s: %v %+v", name, err, d)
		}
	}
}

func TestDatasetsThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "has no prompts"},
		"blank":         {"\n \n", "has no prompts"},
		"not JSON":      {"{\"prompt\":\"a\"}\nSECRET\n", "entry 2 is not a JSON object"},
		"no prompt":     {`{"question":"a"}`, "entry 1 has no prompt"},
		"empty prompt":  {`{"prompt":""}`, "entry 1 has no prompt"},
		"tokens":        {`{"prompt":"a","max_tokens":0}`, "entry 1 has a max_tokens"},
		"messages":      {`{"messages":"a"}`, "entry 1 has messages that are not a list"},
		"list cut":      {`[{"conversations":[{"from":"human","value":"q"}]}`, "cut off"},
		"list of text":  {`["SECRET"]`, "entry 1 is not"},
		"empty list":    {`[]`, "has no prompts"},
		"nobody speaks": {`[{"conversations":[]}]`, "has no prompts"},
		"a bracket":     {"{\"prompt\":\"a\"}\n]", "cut off"},
		"prompt cut":    {`{"prompt":"SECR`, "or the file was cut off"},
	} {
		_, err := parseDataset(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadDataset("no/such/file"); err == nil {
		t.Error("a file that is not there is read")
	}
}

func FuzzDataset(f *testing.F) {
	f.Add("{\"prompt\":\"a\"}\n")
	f.Add(`[{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]}]`)
	f.Add(`{"messages":[{"role":"user","content":"u"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDataset(strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range len(d.list) {
			if p := d.at(i); p.text == "" || p.maxTokens < 1 || p.maxTokens > max(maxTokens, len(text)) {
				t.Fatalf("%q: %+v", text, p)
			}
		}
	})
}
