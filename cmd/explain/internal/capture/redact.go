package capture

import (
	"regexp"
	"strings"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// secretName matches names of flags, variables and JSON keys whose values are secrets. A word counts whole or as part
// of a name in any spelling (--api-key, HF_TOKEN, apiKey); a bare "key" must end the name, so that --kv-cache-dtype and
// --keyframes stay.
var secretName = regexp.MustCompile(`(?i)(token|secret|passw|passphrase|credential|authorization|bearer|cookie|signature|private|webhook|dsn$|api[-_.]?key|access[-_.]?key|key$|(^|[-_])auth$)`)

// countName matches names that hold such a word and are numbers or names of a tokenizer: vLLM has many of them.
var countName = regexp.MustCompile(`(?i)(tokens$|tokenizer|token[-_]?(id|ids|count|limit|budget|parallel|usage)|skip[-_]special|per[-_]token|prompt[-_]token)`)

func isSecret(name string) bool { return secretName.MatchString(name) && !countName.MatchString(name) }

var (
	assignment = regexp.MustCompile(`^(-{0,2}[A-Za-z_][A-Za-z0-9_.-]*)=(.*)$`)
	userInfo   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/@\s'"]+@`)
	urlQuery   = regexp.MustCompile(`([?&]([A-Za-z0-9_.-]+)=)([^&\s'"#]+)`)
	jsonPair   = regexp.MustCompile(`("([^"\\]*)"\s*:\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]]+)`)
	textPair   = regexp.MustCompile(`(-{0,2}\b([A-Za-z_][A-Za-z0-9_.-]*)['"]?\s*[=:]\s*)('[^']*'|"[^"]*"|[^\s,;)}\]]+)`)
	headerPair = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`)
	// knownSecret matches what looks like a secret wherever it stands: prefixes that providers give their tokens, and
	// JSON web tokens.
	knownSecret = regexp.MustCompile(`\b(hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{8,}|xox[abprs]-[A-Za-z0-9-]{8,}|AKIA[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.?[A-Za-z0-9_-]*)`)
	// shortHeader is the flag by which curl and its like take a header.
	headerFlag = map[string]bool{"-H": true, "--header": true, "-u": true, "--user": true}
)

// redact returns a copy of a command line in which secrets are replaced: the value after a flag or in an assignment
// whose name says that it is one (--api-key V, --hf-token=V, OPENAI_API_KEY=V, also inside --env-var=A=V,B=V), headers,
// the user in a URL, members of JSON arguments, and what looks like a token of a known provider wherever it stands.
func redact(argv []string) []string {
	out := make([]string, len(argv))
	hide := false
	for i, arg := range argv {
		switch {
		case hide && !(strings.HasPrefix(arg, "--") && len(arg) > 2): // else the flag before it was a switch
			out[i], hide = Redacted, false
			continue
		case strings.HasPrefix(arg, "-") && !strings.Contains(arg, "="):
			out[i], hide = RedactText(arg), isSecret(strings.TrimLeft(arg, "-")) || headerFlag[arg]
			continue
		}
		out[i], hide = redactArgument(arg), false
	}
	return out
}

func redactArgument(arg string) string {
	m := assignment.FindStringSubmatch(arg)
	switch {
	case m == nil:
		return RedactText(arg)
	case isSecret(strings.TrimLeft(m[1], "-")):
		return m[1] + "=" + Redacted
	case assignment.MatchString(m[2]): // --env-var=NAME=VALUE,NAME=VALUE
		parts := strings.Split(m[2], ",")
		for i, p := range parts {
			parts[i] = redactArgument(p)
		}
		return m[1] + "=" + strings.Join(parts, ",")
	}
	return m[1] + "=" + RedactText(m[2])
}

// RedactText replaces secrets in a line of text, such as a script after sh -c.
func RedactText(s string) string {
	pair := func(re *regexp.Regexp) {
		s = re.ReplaceAllStringFunc(s, func(all string) string {
			m := re.FindStringSubmatch(all)
			if !isSecret(m[2]) || strings.HasPrefix(strings.Trim(m[3], `"`), strings.TrimSuffix(Redacted, "]")) {
				return all
			}
			return m[1] + Redacted
		})
	}
	s = userInfo.ReplaceAllString(s, "${1}"+Redacted+"@")
	s = headerPair.ReplaceAllString(s, "${1} "+Redacted)
	s = knownSecret.ReplaceAllString(s, Redacted)
	pair(jsonPair)
	pair(urlQuery)
	pair(textPair)
	return secretFlag.ReplaceAllStringFunc(s, func(all string) string {
		m := secretFlag.FindStringSubmatch(all)
		if !isSecret(m[2]) {
			return all
		}
		return m[1] + Redacted
	})
}

// secretFlag is a flag with its value inside a line of text.
var secretFlag = regexp.MustCompile(`(--?([A-Za-z][A-Za-z0-9_.-]*)\s+)([^\s-]\S*)`)

// shellSafe are words that need no quotes in a POSIX shell.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Shell writes a command line as one line for a POSIX shell, secrets replaced.
func Shell(argv []string) string {
	words := redact(argv)
	for i, w := range words {
		if !shellSafe.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
