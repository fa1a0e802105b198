package gate

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
)

type entry struct {
	name, text string
	mode       fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.name, "/") {
			continue // a folder
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadZip(t *testing.T) {
	files, err := readZip(zipOf(t, entry{"b/report.json", "2", 0}, entry{"b/", "", fs.ModeDir | 0o755}, entry{"a.json", "1", 0}, entry{"report.md", "no", 0}, entry{"a.JSON.txt", "no", 0}))
	if err != nil || fmt.Sprint(files) != fmt.Sprint([]File{{"a.json", []byte("1")}, {"b/report.json", []byte("2")}}) {
		t.Errorf("%v, %v", files, err)
	}
	var many []entry
	for i := range maxEntries + 1 {
		many = append(many, entry{fmt.Sprintf("%d.txt", i), "", 0})
	}
	ok := entry{"ok.json", "{}", 0}
	for want, entries := range map[string][]entry{
		"holds no .json":       {{"a.txt", "", 0}},
		"more than 2000":       many,
		"twice":                {ok, {"OK.json", "{}", 0}},
		`"./a//ok.json" twice`: {{"a/ok.json", "{}", 0}, {"./a//ok.json", "{}", 0}},
		"leads out of it":      {ok, {"../x", "", 0}},
		"bad name: \"":         {ok, {"a\\..\\..\\x.json", "", 0}},
		"not a regular file":   {ok, {"x", "/etc/passwd", fs.ModeSymlink | 0o777}},
	} {
		if _, err := readZip(zipOf(t, entries...)); err == nil || !contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, name := range []string{"/etc/x.json", "a/../../x.json", "a/../x.json", "C:/x.json", "x\x00.json", "x\n::error::.json", "\u202ex.json", "\xff.json", strings.Repeat("x", maxName+1), "/", "..", ""} {
		if _, err := readZip(zipOf(t, ok, entry{name, "{}", 0})); err == nil || strings.ContainsAny(err.Error(), "\n\u202e") {
			t.Errorf("%q: error %v", name, err)
		}
	}
	good := zipOf(t, ok)
	for i := range good {
		damaged := bytes.Clone(good)
		damaged[i] ^= 0x55
		readZip(damaged) // never a panic; some bytes matter to nobody
		if _, err := readZip(good[:i]); err == nil {
			t.Errorf("the first %d bytes are a zip", i)
		}
	}
}

// FuzzZip: what is read is within its limits, and inside the archive.
func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, entry{"report.json", "{}", 0}, entry{"a/b.json", "1", 0}))
	f.Add(zipOf(f, entry{"../x.json", "{}", 0}))
	f.Add(zipOf(f, entry{"x.json", strings.Repeat("0", 100_000), 0}))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := readZip(b)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		last := ""
		for _, file := range files {
			if !fs.ValidPath(path.Clean(file.Name)) || len(file.Data) > maxEntry || file.Name <= last {
				t.Errorf("%q with %d bytes after %q", file.Name, len(file.Data), last)
			}
			last = file.Name
		}
	})
}
