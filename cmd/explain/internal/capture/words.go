package capture

import (
	"errors"
	"strings"
)

// Words splits a command line as a POSIX shell would: at blanks, with single and double quotes and backslashes. Nothing
// is expanded, and operators (|, >, &&) are ordinary words: sh -c '…' is for those.
func Words(line string) ([]string, error) {
	var list []string
	var word strings.Builder
	in, started := rune(0), false
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if in == '"' && !strings.ContainsRune(`"\$`+"`", r) {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && in != '\'':
			escaped, started = true, true
		case in != 0 && r == in:
			in = 0
		case in != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			in, started = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if started {
				list = append(list, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if in != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if started {
		list = append(list, word.String())
	}
	if len(list) == 0 {
		return nil, errors.New("the command is empty")
	}
	return list, nil
}
