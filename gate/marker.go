package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// maxKey bounds a comment key in bytes.
const maxKey = 80

// marker is the invisible last line of our comments: what the comment is about and which run wrote it.
type marker struct {
	key   string
	stamp stamp
}

// The numbers have at most 18 digits, so that they always fit. A note of older versions, accepted=, is skipped.
var markerLine = pattern.New(`^<!-- explain:v1:key=([A-Za-z0-9._-]{1,80}) head=([0-9a-f]{40}|[0-9a-f]{64}|-) run=([0-9]{1,18}) attempt=([0-9]{1,9})(?: accepted=[0-9a-f,.=]+)? -->$`)

func (m marker) String() string {
	head := m.stamp.HeadSHA
	if !IsCommit(head) {
		head = "-"
	}
	return fmt.Sprintf("<!-- explain:v1:key=%s head=%s run=%d attempt=%d -->", CleanKey(m.key), head,
		max(m.stamp.RunID, 0), max(m.stamp.Attempt, 0))
}

// sign puts the marker below a text.
func (m marker) sign(text string) string {
	return strings.TrimRight(text, " \r\n") + "\n\n" + m.String()
}

// readMarker splits a comment into its text and its marker. Only the last line counts: text above may quote anything.
func readMarker(body string) (text string, m marker, ok bool) {
	body = strings.TrimRight(strings.ReplaceAll(body, "\r\n", "\n"), " \n")
	cut := strings.LastIndexByte(body, '\n') + 1
	f := markerLine().FindStringSubmatch(body[cut:])
	if f == nil || CleanKey(f[1]) != f[1] {
		return "", marker{}, false
	}
	m.key = f[1]
	if f[2] != "-" {
		m.stamp.HeadSHA = f[2]
	}
	m.stamp.RunID, _ = strconv.ParseInt(f[3], 10, 64)
	m.stamp.Attempt, _ = strconv.Atoi(f[4])
	return strings.TrimRight(body[:cut], " \n"), m, true
}

var notInKey = pattern.New(`[^A-Za-z0-9._]+`)

// CleanKey turns any text into a comment key: letters, digits, dot, underscore and single dashes, at most 80 bytes. A
// key that had to be changed ends in a short hash, so that two never become one. Empty text gives "explain".
func CleanKey(s string) string {
	if s == "" {
		return "explain"
	}
	// two dashes would end the HTML comment that the marker is
	clean := strings.Trim(notInKey().ReplaceAllString(s, "-"), "-")
	if clean == s && len(s) <= maxKey {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	hash := hex.EncodeToString(sum[:4])
	if len(clean) > maxKey-len(hash)-1 {
		clean = strings.TrimRight(clean[:maxKey-len(hash)-1], "-")
	}
	if clean == "" {
		return "explain-" + hash
	}
	return clean + "-" + hash
}
