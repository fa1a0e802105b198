// Package secret knows what access tokens, and names that were meant for few, look like. It is for texts that anybody
// may write into a capture: names of ranges, threads and kernels, and command lines.
package secret

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// token matches what looks like a token wherever it stands: the prefixes that providers give theirs, at the length that
// they have, JSON web tokens, and private keys to their end.
var token = pattern.New(`\b(?:hf_[A-Za-z0-9]{20,}|api_org_[A-Za-z0-9]{20,}|[sr]k[-_][A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{20,}|` +
	`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|rt|dt|ptt|cbt|soat|ft|agent|imt)-[A-Za-z0-9_-]{16,}|` +
	`npm_[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{16,}|` +
	`(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{20,}|` +
	`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.?[A-Za-z0-9_-]*|gsk_[A-Za-z0-9]{32,}|xai-[A-Za-z0-9]{32,}|pplx-[A-Za-z0-9]{32,}|` +
	`pcsk_[A-Za-z0-9_]{32,}|lsv2_(?:pt|sk)_[0-9a-f]{32}\w*|lin_api_[A-Za-z0-9]{32,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|` +
	`do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|` +
	`PMAK-[0-9a-f]{24}-[0-9a-f]{32,}|NRAK-[A-Z0-9]{24,}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{30,}|` +
	`sntry[su]_[A-Za-z0-9_=+/-]{30,}|figd_[A-Za-z0-9_-]{30,}|glsa_[A-Za-z0-9]{32}\w*|whsec_[A-Za-z0-9+/=]{24,}|ntn_[A-Za-z0-9]{40,}|` +
	`[0-9]{8,10}:AA[A-Za-z0-9_-]{30,})|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))`)

// tokenWord reports whether what stands before a dash, an underscore, a dot or a colon begins a token.
func tokenWord(w string) bool {
	switch w {
	case "hf", "org", "sk", "rk", "nvapi", "ghp", "gho", "ghu", "ghs", "ghr", "pat", "glpat", "glrt", "gldt", "glptt", "glcbt",
		"glsoat", "glft", "glagent", "glimt", "npm", "r8", "pypi", "xapp", "ya29", "GOCSPX", "gsk", "xai", "pplx", "pcsk", "lsv2",
		"lin", "hvs", "hvb", "hvr", "doo", "dop", "dor", "SG", "shpat", "shpca", "shppa", "shpss", "PMAK", "NRAK", "dckr", "AGE",
		"sntrys", "sntryu", "figd", "glsa", "whsec", "ntn", "hooks", "discord", "discordapp":
		return true
	}
	return len(w) == 4 && w[:3] == "xox" || len(w) >= 8 && len(w) <= 10 && strings.Trim(w, "0123456789") == ""
}

var (
	header   = pattern.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	userInfo = pattern.New(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s'"]+@`)
	hook     = pattern.New(`\b(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_-]+`)
	// signed is what signs a URL, up to its next part.
	signed = pattern.New(`((?i:[?&;](?:sig|token|key|auth|code|jwt|[a-z0-9_-]*(?:signature|credential|[_-]token))))` +
		`(["']?\s?(?:=|:\s?)["']?)[^\s"'&#,;:<>(){}\[\]]{4,}`)
	// keyValue is a value behind a name that only secrets have, up to a blank or a quote: password=…, "api_key": …,
	// FOO_TOKEN=…. A bare token=… is not among them: engines count tokens.
	keyValue = pattern.New(`((?i:passw(?:or)?d|passphrase|pwd|secret|(?:api|access|account|secret|private|encryption|auth)[-_]?key|` +
		`(?:access|auth|api|refresh|session|security|bearer)[-_]?token|credentials?)|\b[A-Z][A-Z0-9_]*_TOKEN)` +
		`(["']?\s?(?:=|:\s?)["']?)[^\s"']{4,}`)
	nextName = pattern.New(`[&;#][A-Za-z][A-Za-z0-9_.-]*=`)
	email    = pattern.New(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
)

// keyWord reports whether what stands before an equals sign or a colon may name a secret.
func keyWord(before string) bool {
	before = strings.TrimRight(before, `"' `)
	return slices.ContainsFunc([]string{"sig", "signature", "token", "key", "auth", "code", "jwt", "credential",
		"credentials", "password", "passwd", "passphrase", "pwd", "secret"}, func(w string) bool {
		return len(before) >= len(w) && strings.EqualFold(before[len(before)-len(w):], w)
	})
}

// Tokens replaces in a name what looks like an access token, the key in an Authorization header, the user in a URL, and
// the signature of one, and the value behind a name that only secrets have. Names without any come back as they are, at
// the cost of one look at each byte.
func Tokens(name string) string {
	if !mayHold(name) {
		return name
	}
	name = userInfo().ReplaceAllString(name, "${1}"+Redacted+"@")
	name = hook().ReplaceAllString(name, "${1}"+Redacted)
	name = signed().ReplaceAllString(name, "${1}${2}"+Redacted)
	name = values(name)
	name = header().ReplaceAllStringFunc(name, func(s string) string {
		if scheme := strings.Fields(s)[0]; hasDigit(s) || len(s) > 24 {
			return scheme + " " + Redacted
		}
		return s // bearer something, in words
	})
	return token().ReplaceAllStringFunc(name, func(s string) string {
		if hasDigit(s) || issued(s) {
			return Redacted
		}
		return s // words behind dashes
	})
}

// values replaces what stands behind names that only secrets have. In a URL, or a list of settings, the next name
// follows.
func values(name string) string {
	at := keyValue().FindStringSubmatchIndex(name)
	if at == nil {
		return name
	}
	head, rest := name[:at[5]]+Redacted, name[at[1]:]
	if next := nextName().FindStringIndex(name[at[5]:at[1]]); next != nil {
		rest = name[at[5]+next[0]:]
	}
	return head + values(rest)
}

// issued reports whether a token begins as no word does, so that it is one without a digit too: 3 % of GitLab's have
// none.
func issued(token string) bool {
	return slices.ContainsFunc([]string{"-", "gl", "gh", "github_pat_", "nvapi-", "npm_", "pypi-"},
		func(prefix string) bool { return strings.HasPrefix(token, prefix) })
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// mayHold looks for the marks of secrets, byte by byte.
func mayHold(name string) bool {
	if len(name) < 8 {
		return false
	}
	word := 0 // where the letters and digits before this byte begin
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			switch {
			case i-word == 3 && (c == 'A' && (name[word:i] == "AKI" || name[word:i] == "ASI") ||
				c == 'a' && name[word:i] == "AIz" || c == 'i' && name[word:i] == "dap"), i-word == 2 && c == 'J' &&
				name[word:i] == "ey":
				return true
			}
			continue
		case c == '@', c == '-' && i > 0 && name[i-1] == '-':
			return true
		case c == '=', c == ':' && !strings.HasPrefix(name[i+1:], ":") && (i == 0 || name[i-1] != ':'):
			if keyWord(name[:i]) {
				return true
			}
		case c <= ' ':
			if w := name[word:i]; strings.EqualFold(w, "basic") || strings.EqualFold(w, "bearer") {
				return true
			}
		}
		if (c == '-' || c == '_' || c == '.' || c == ':') && tokenWord(name[word:i]) {
			return true
		}
		word = i + 1
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
	case strings.IndexByte(name, '@') > 0 && email().MatchString(name):
		return Email
	case promptWord().MatchString(name), len(strings.Fields(name)) >= 10 && !strings.ContainsAny(name, "<>{}();"):
		return Prompt
	}
	return None
}

// promptWord is how a prompt is introduced, with something behind it.
var promptWord = pattern.New(`(?i)\b(prompt|user message|question|completion)\s*[:=]\s*\S+\s+\S+`)
