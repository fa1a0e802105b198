// Package secret knows what access tokens, and names that were meant for few, look like. It is for texts that anybody
// may write into a capture: names of ranges, threads and kernels, and command lines.
package secret

import (
	"regexp"
	"strings"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// token matches what looks like a token wherever it stands: the prefixes that providers give theirs, at the length that
// they have, JSON web tokens, and the first line of a private key.
var token = regexp.MustCompile(`\b(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|[sr]k[-_][A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{20,}|` +
	`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|` +
	`pypi-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{16,}|` +
	`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.?[A-Za-z0-9_-]*)|-----BEGIN [A-Z ]*PRIVATE KEY-----`)

var (
	header    = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	userInfo  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s'"]+@`)
	signature = regexp.MustCompile(`(?i)([?&](?:sig|signature|x-amz-signature|x-goog-signature)=)[^&\s'"#]+`)
	email     = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
)

// Tokens replaces in a name what looks like an access token, the key in an Authorization header, the user in a URL, and
// the signature of one. Names without any come back as they are, at the cost of one look at each byte.
func Tokens(name string) string {
	if !mayHold(name) {
		return name
	}
	name = userInfo.ReplaceAllString(name, "${1}"+Redacted+"@")
	name = signature.ReplaceAllString(name, "${1}"+Redacted)
	name = header.ReplaceAllStringFunc(name, func(s string) string {
		if scheme := strings.Fields(s)[0]; hasDigit(s) || len(s) > 24 {
			return scheme + " " + Redacted
		}
		return s // bearer something, in words
	})
	return token.ReplaceAllStringFunc(name, func(s string) string {
		if hasDigit(s) || strings.HasPrefix(s, "-") {
			return Redacted
		}
		return s // words behind dashes
	})
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// mayHold looks for the marks of secrets, byte by byte.
func mayHold(name string) bool {
	if len(name) < 10 {
		return false
	}
	for i := range len(name) {
		switch name[i] {
		case '-':
			if i >= 2 && (name[i-1] == 'k' && (name[i-2] == 's' || name[i-2] == 'r') || strings.HasSuffix(name[:i], "nvapi") ||
				strings.HasSuffix(name[:i], "glpat") || strings.HasSuffix(name[:i], "pypi") || name[i-1] == '-' ||
				i >= 4 && name[i-4:i-1] == "xox") {
				return true
			}
		case '_':
			if i >= 2 && (name[i-2] == 'h' && name[i-1] == 'f' || name[i-1] == 'k' && (name[i-2] == 's' || name[i-2] == 'r') ||
				i >= 3 && name[i-3] == 'g' && name[i-2] == 'h' || name[i-2] == 'r' && name[i-1] == '8' ||
				strings.HasSuffix(name[:i], "npm") || strings.HasSuffix(name[:i], "pat") || strings.HasSuffix(name[:i], "org")) {
				return true
			}
		case 'A':
			if i >= 3 && name[i-3] == 'A' && name[i-1] == 'I' && (name[i-2] == 'K' || name[i-2] == 'S') {
				return true
			}
		case 'a':
			if i >= 3 && name[i-3:i] == "AIz" {
				return true
			}
		case 'J':
			if i >= 2 && name[i-2:i] == "ey" {
				return true
			}
		case '@':
			return true
		case '=':
			if i >= 3 && strings.EqualFold(name[i-3:i], "sig") || i >= 9 && strings.EqualFold(name[i-9:i], "signature") {
				return true
			}
		case ' ', '\t', '\n', '\r', '\f':
			if i >= 5 && (strings.EqualFold(name[i-5:i], "basic") || i >= 6 && strings.EqualFold(name[i-6:i], "bearer")) {
				return true
			}
		case '.':
			if i >= 4 && name[i-4:i] == "ya29" {
				return true
			}
		}
	}
	return false
}

// Kind is what a name looks like that was hardly meant for everybody.
type Kind string

// What names look like.
const (
	None   Kind = ""
	Token  Kind = "token"
	Email  Kind = "e-mail address"
	Prompt Kind = "prompt"
)

// Article is the kind with its article: an e-mail address.
func (k Kind) Article() string {
	if k == Email {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// Of says what a name looks like: a token, or what Tokens left of one; an e-mail address; a prompt, which is a text of
// ten words and more, or one that calls itself so. Names of code have no blanks, or few.
func Of(name string) Kind {
	switch {
	case strings.Contains(name, Redacted), Tokens(name) != name:
		return Token
	case strings.IndexByte(name, '@') > 0 && email.MatchString(name):
		return Email
	case promptWord.MatchString(name), len(strings.Fields(name)) >= 10 && !strings.ContainsAny(name, "<>{}();"):
		return Prompt
	}
	return None
}

// promptWord is how a prompt is introduced, with something behind it.
var promptWord = regexp.MustCompile(`(?i)\b(prompt|user message|question|completion)\s*[:=]\s*\S+\s+\S+`)
