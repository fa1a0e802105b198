package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/analyze/report/secret"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Redacted replaces secrets in what explain writes.
const Redacted = secret.Redacted

// secretName matches names of flags, variables and JSON keys whose values are secrets. A word counts whole or as part
// of a name in any spelling (--api-key, HF_TOKEN, apiKey); a bare "key", "pass" or "sig" must end the name, so that
// --kv-cache-dtype and --keyframes stay.
var secretName = pattern.New(`(?i)(token|secret|passw|passphrase|pass$|pwd$|credential|authorization|bearer|cookie|signature|private|webhook|dsn$|connection[-_]?string|api[-_.]?key|access[-_.]?key|key$|(^|[-_.])(auth|pw|tok|pat|jwt|sas|sig|otp|pin|hmac|salt|cred|creds)$)`)

// harmlessName matches names that hold such a word but are numbers, names of a tokenizer, or the place of a secret:
// vLLM has many of them.
var harmlessName = pattern.New(`(?i)(tokens$|tokenizer|token[-_]?(id|ids|count|limit|budget|parallel|usage)|skip[-_]special|per[-_]token|prompt[-_]token|(by|com|multi)pass$|[-_](file|path|dir|env|var|name|type|mode)$)`)

func isSecret(name string) bool {
	return secretName().MatchString(name) && !harmlessName().MatchString(name)
}

var (
	assignment = pattern.New(`^(-{0,2}[A-Za-z_][A-Za-z0-9_.-]*)=(?s:(.*))$`)
	userInfo   = pattern.New(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s'"]+@`)
	urlQuery   = pattern.New(`([?&]([A-Za-z0-9_.-]+)=)([^&\s'"#]+)`)
	jsonPair   = pattern.New(`("([^"\\]*)"\s*:\s*)("(?:[^"\\]|\\.)*"|[^\s,}\]{\[]+)`)
	textPair   = pattern.New(`(-{0,2}\b([A-Za-z_][A-Za-z0-9_.-]*)['"]?\s*[=:]\s*)('[^']*'|"(?:[^"\\]|\\.)*"|[^\s,;)}\]]+)`)
	headerPair = pattern.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}`)
	// knownSecret matches tokens that secret.Tokens does not take for one: shorter ones, and ones without digits.
	knownSecret = pattern.New(`\b(hf_[A-Za-z0-9]{8,}|[sr]k[-_][A-Za-z0-9_-]{8,}|nvapi-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}|glpat-[A-Za-z0-9_-]{8,}|npm_[A-Za-z0-9]{8,}|r8_[A-Za-z0-9]{8,}|pypi-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{8,})`)
	// secretFlag matches a flag and its value inside a line of text.
	secretFlag = pattern.New(`(--?([A-Za-z][A-Za-z0-9_.-]*)\s+)((?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s-])\S*)`)
	// secretWord matches a word whose next argument is a secret: login token VALUE.
	secretWord = pattern.New(`(?i)^(token|password|passwd|secret|api-?key)$`)
	// headerFlag has the flags with which curl and similar tools take a header, cookies, or a user with password, and what
	// such a value contains: python -u serve.py and gunicorn -b 0.0.0.0:80 are something else.
	headerFlag = map[string]string{"-H": "", "--header": "", "-u": ":", "--user": ":", "--proxy-user": ":", "-b": "="}
	// login matches programs and commands whose -p is a password; elsewhere it is a port.
	login = pattern.New(`(?i)(^|/)(sshpass|login)$`)
	// wordPair matches a password after its name, as in a .netrc.
	wordPair = pattern.New(`(?i)(\b(?:password|passwd)\s+)([^\s=:'"-]\S*)`)
)

// redact returns a copy of a command line in which secrets are replaced: the value after a flag or in an assignment
// whose name says that it is one (--api-key V, --hf-token=V, OPENAI_API_KEY=V, also inside --env-var=A=V,B=V), headers,
// the user in a URL, members of JSON arguments at any depth, what looks like a token of a known provider wherever it
// stands, and values of other flags that look random.
func redact(argv []string) []string {
	out := make([]string, len(argv))
	flag, hide := "", false // the previous flag, and whether its value is a secret
	logsIn := slices.ContainsFunc(argv, login().MatchString)
	for i, arg := range argv {
		before := flag
		flag = ""
		switch {
		case hide && !(strings.HasPrefix(arg, "--") && len(arg) > 2): // else the previous flag was a switch
			out[i], hide = Redacted, false
		case strings.HasPrefix(arg, "-") && !strings.Contains(arg, "="):
			flag = strings.TrimLeft(arg, "-")
			next := lists.Nth(argv, i+1, "")
			out[i], hide = RedactText(arg), isSecret(flag) || header(arg, next) || shortKey(arg, next) || logsIn && arg == "-p"
		case secretWord().MatchString(arg):
			out[i], hide = arg, true
		default:
			out[i], hide = redactArgument(before, arg), false
		}
	}
	return out
}

// header reports whether the value of a flag is a header, cookies, or a user with password.
func header(flag, value string) bool {
	mark, ok := headerFlag[flag]
	return ok && strings.Contains(value, mark)
}

// shortKey reports whether the value of -k is a key: for curl, -k is a switch and the address follows.
func shortKey(flag, value string) bool { return flag == "-k" && !strings.Contains(value, "://") }

// redactArgument replaces secrets in an argument; flag is the name of the flag before it, or empty.
func redactArgument(flag, arg string) string {
	if shown, ok := redactJSON(arg); ok {
		return shown
	}
	m := assignment().FindStringSubmatch(arg)
	switch {
	case m == nil:
		if looksRandom(flag, arg) {
			return Redacted
		}
		return RedactText(arg)
	case isSecret(strings.TrimLeft(m[1], "-")):
		return m[1] + "=" + Redacted
	case assignment().MatchString(m[2]): // --env-var=NAME=VALUE,NAME=VALUE
		parts := strings.Split(m[2], ",")
		for i, p := range parts {
			parts[i] = redactArgument("", p)
		}
		return m[1] + "=" + strings.Join(parts, ",")
	}
	return m[1] + "=" + redactArgument(strings.TrimLeft(m[1], "-"), m[2])
}

// redactJSON replaces the secrets of a JSON object or list: every value whose key names a secret, at any depth. ok is
// false if the text is not JSON.
func redactJSON(text string) (shown string, ok bool) {
	if s := strings.TrimSpace(text); s == "" || s[0] != '{' && s[0] != '[' {
		return "", false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	j := jsonRedactor{in: d}
	if j.value(false) != nil {
		return "", false
	}
	if _, err := d.Token(); err != io.EOF {
		return "", false
	}
	if !j.hid {
		return text, true
	}
	return j.out.String(), true
}

// jsonRedactor copies JSON, members in their order, without the secrets.
type jsonRedactor struct {
	in  *json.Decoder
	out bytes.Buffer
	hid bool // something was replaced
}

func (j *jsonRedactor) value(hide bool) error {
	t, err := j.in.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		end := map[json.Delim]byte{'{': '}', '[': ']'}[v]
		j.out.WriteByte(byte(v))
		for first := true; j.in.More(); first = false {
			if !first {
				j.out.WriteByte(',')
			}
			below := hide
			if v == '{' {
				key, err := j.in.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				below = hide || isSecret(name)
				j.write(name)
				j.out.WriteByte(':')
			}
			if err := j.value(below); err != nil {
				return err
			}
		}
		j.out.WriteByte(end)
		_, err := j.in.Token()
		return err
	case string:
		shown := redactArgument("", v)
		if hide {
			shown = Redacted
		}
		j.hid = j.hid || shown != v
		j.write(shown)
	case json.Number:
		if hide {
			j.hid = true
			j.write(Redacted)
			return nil
		}
		j.out.WriteString(v.String())
	default: // true, false, null
		j.write(v)
	}
	return nil
}

func (j *jsonRedactor) write(v any) {
	b, _ := json.Marshal(v) // text, a bool or null: cannot fail
	j.out.Write(b)
}

var (
	randomText = pattern.New(`^[A-Za-z0-9_+/=.~-]{20,}$`)
	uuid       = pattern.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	hexText    = pattern.New(`^[0-9a-fA-F]{32,}$`)
	alnum      = pattern.New(`[A-Za-z0-9]+`)
	piece      = pattern.New(`[0-9]+|[A-Z]+[a-z]*|[a-z]+`) // a number or a word, which a capital begins
	// publicName matches flags whose values look random but are not secret: versions, devices, ids of runs.
	publicName = pattern.New(`(?i)(revision|commit|sha\d*|digest|hash|checksum|device|uuid|(^|[-_])id|run|seed|session(-new)?|image|model|path|dir|file|output|nvtx|name)$`)
)

// looksRandom reports whether a value looks random, as keys do: letters and digits in turns, without words.
func looksRandom(flag, value string) bool {
	switch {
	case publicName().MatchString(flag), !randomText().MatchString(value), strings.ContainsAny(value[:1], "/.~"):
		return false
	case flag == "" && len(value) < 32: // no flag says what it is for
		return false
	case uuid().MatchString(value), hexText().MatchString(value):
		return true
	}
	return slices.ContainsFunc(alnum().FindAllString(value, -1), func(run string) bool {
		return len(run) >= 16 && len(piece().FindAllString(run, -1)) > len(run)/4
	})
}

// RedactText replaces secrets in a line of text, such as a script after sh -c.
func RedactText(s string) string {
	hide := func(re *regexp.Regexp, hides func(name, value string) bool) {
		s = re.ReplaceAllStringFunc(s, func(all string) string {
			if m := re.FindStringSubmatch(all); hides(m[2], m[3]) {
				return m[1] + Redacted
			}
			return all
		})
	}
	secretPair := func(name, value string) bool {
		return isSecret(name) && !strings.HasPrefix(strings.Trim(value, `"`), strings.TrimSuffix(Redacted, "]"))
	}
	s = userInfo().ReplaceAllString(s, "${1}"+Redacted+"@")
	s = headerPair().ReplaceAllString(s, "${1} "+Redacted)
	s = knownSecret().ReplaceAllString(secret.Tokens(s), Redacted)
	hide(jsonPair(), secretPair)
	hide(urlQuery(), secretPair)
	hide(textPair(), secretPair)
	s = wordPair().ReplaceAllString(s, "${1}"+Redacted)
	return redactFlags(s)
}

// redactFlags replaces the values of flags inside a line of text. A quoted value that stays may be a script or more
// arguments, with flags of its own: bash -c 'serve --api-key V'.
func redactFlags(s string) string {
	var out strings.Builder
	for m := secretFlag().FindStringSubmatchIndex(s); m != nil; m = secretFlag().FindStringSubmatchIndex(s) {
		name, value, at := s[m[4]:m[5]], s[m[6]:m[7]], m[7]
		inner := strings.TrimLeft(value, `'"`)
		first := strings.IndexAny(value, " \t\n") // the end of its first word
		switch {
		case isSecret(name), header("-"+name, value), header("--"+name, value), shortKey("-"+name, value), looksRandom(name, value):
			out.WriteString(s[:m[6]] + Redacted)
			s = s[at:]
			continue
		case inner != value && strings.HasPrefix(inner, "-"):
			at = m[7] - len(inner)
		case first > 0:
			at = m[6] + first
		}
		out.WriteString(s[:at])
		s = s[at:]
	}
	return out.String() + s
}

// Shell writes a command line as one line for a POSIX shell, secrets replaced.
func Shell(argv []string) string {
	return strings.Join(lists.Map(redact(argv), wording.ShellWord), " ")
}

// Parts of a command line: a word, what of it is quoted or behind a backslash, and what a backslash means in double
// quotes.
var (
	shellWord  = pattern.New(`(?s)([^ \t\n'"\\]|\\.|'[^']*'|"([^"\\]|\\.)*")+`)
	quotedPart = pattern.New(`(?s)'[^']*'|"([^"\\]|\\.)*"|\\.`)
	escaped    = pattern.New("\\\\([\"\\\\$`])")
)

// Words splits a command line as a POSIX shell would: at blanks, with single and double quotes and backslashes. Nothing
// is expanded, and operators (|, >, &&) are ordinary words: sh -c '…' is for those.
func Words(line string) ([]string, error) {
	list := shellWord().FindAllString(line, -1)
	switch rest := shellWord().ReplaceAllString(line, ""); {
	case strings.Trim(rest, " \t\n") != "":
		return nil, errors.New("a quote is not closed")
	case len(list) == 0:
		return nil, errors.New("the command is empty")
	}
	for i, word := range list {
		list[i] = quotedPart().ReplaceAllStringFunc(word, func(part string) string {
			switch part[0] {
			case '\'':
				return part[1 : len(part)-1]
			case '"':
				return escaped().ReplaceAllString(part[1:len(part)-1], "$1")
			}
			return part[1:]
		})
	}
	return list, nil
}
