package kernelname

import (
	"bytes"
	"regexp"
	"strings"
)

// anonymous is the one spelling of an unnamed namespace: the one nsys prints.
// c++filt prints "(anonymous namespace)", GCC "{anonymous}".
const anonymous = "<unnamed>"

// maxPasses bounds the search for a stable spelling (see Canonical).
const maxPasses = 4

// Canonical returns one spelling of a kernel name, equal for two exports of the same kernel, whichever nsys, ncu or
// demangler printed it:
//
//   - casts and literal suffixes go: (int)4, (unsigned long)4, 4ul → 4;
//     (bool)0 and false → 0 (ncu prints the bare number, so the number it is);
//   - `const` goes and white space is one way: "std::array<char*, 3>";
//   - (anonymous namespace), {anonymous} → <unnamed>;
//   - [lambda(float) (instance 2)] → {lambda(float)#2}. The number stays: ATen numbers the dtypes and cases of one
//     function that way, and they are different kernels;
//   - return types and parameter lists go, those of enclosing functions too: one demangler prints T1 in them, another
//     the type. Template arguments identify the instance. Overloads of a function that is not a template get one name,
//     which is rare and does less harm than two names for one kernel;
//   - addresses, Inductor's trailing number and Triton's signature suffix
//     (_0d1d2de) become #; ", seq = N" and ", op_id = N" go.
//
// Other numbers stay: stage1 and stage2, 1stage and 2stage are different kernels.
//
// Canonical is idempotent. Text without a stable spelling, or of which nothing would be left, is not a C++ name: it is
// returned unchanged, without the white space around it.
func Canonical(name string) string {
	prev := strings.TrimSpace(name)
	for range maxPasses {
		next := strings.TrimSpace(canonicalPass(prev))
		if next == prev {
			return next
		}
		if next == "" {
			break
		}
		prev = next
	}
	return strings.TrimSpace(name)
}

// canonicalPass writes name once from left to right, in time linear in its length.
func canonicalPass(name string) string {
	s := string(appendUntagged(nil, name))
	if strings.HasPrefix(s, "[CUDA ") || strings.Contains(s, " -> ") {
		return strings.Join(strings.Fields(s), " ") // a copy's label, not a symbol
	}
	p := speller{src: s, out: make([]byte, 0, len(s))}
	p.run()
	return string(stripCounters(p.out))
}

// last kinds of token that decide what a following "(" means.
const (
	afterOther    = iota
	afterFunction // an operator or a dropped list: the next group holds parameters
	afterLambda   // "lambda" was written: the next group is part of its identity
)

// speller holds the state of one pass.
type speller struct {
	src   string
	i     int     // next byte of src to read
	close []int32 // for the "(" at index i: index of its ")" or -1; nil until needed
	out   []byte
	open  []byte // brackets of out that are open: < ( [ {
	space bool   // white space was read since out's last byte
	after int
}

func (p *speller) run() {
	for p.i < len(p.src) {
		c := p.src[p.i]
		rest := p.src[p.i:]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.space = true
			p.i++
		case isWord(c):
			p.word()
		case c == '(':
			p.paren(rest)
		case strings.HasPrefix(rest, anonymous):
			p.unnamed()
		case strings.HasPrefix(rest, "{anonymous}"):
			p.put(anonymous, len("{anonymous}"))
		case strings.HasPrefix(rest, "[lambda"):
			p.push('{', "{", 1)
		case c == '[' && p.space && len(p.open) == 0 && strings.HasPrefix(rest, "[clone"):
			return
		case strings.HasPrefix(rest, "->"):
			p.put("->", 2)
		case c == '<' || c == '[' || c == '{':
			p.push(c, rest[:1], 1)
		case c == '>':
			p.pop('<', ">")
		case c == ')':
			p.pop('(', ")")
		case c == '}', c == ']' && p.top() == '{':
			p.pop('{', "}")
		case c == ']':
			p.pop('[', "]")
		default:
			p.put(rest[:1], 1)
		}
	}
}

// put writes punctuation and reads n bytes.
func (p *speller) put(s string, n int) {
	if p.lastByte() == ',' {
		p.out = append(p.out, ' ')
	}
	p.out = append(p.out, s...)
	p.i += n
	p.space, p.after = false, afterOther
}

func (p *speller) push(bracket byte, s string, n int) {
	p.put(s, n)
	p.open = append(p.open, bracket)
}

func (p *speller) pop(bracket byte, s string) {
	p.put(s, 1)
	if p.top() == bracket {
		p.open = p.open[:len(p.open)-1]
	}
}

func (p *speller) top() byte {
	if len(p.open) == 0 {
		return 0
	}
	return p.open[len(p.open)-1]
}

func (p *speller) lastByte() byte {
	if len(p.out) == 0 {
		return 0
	}
	return p.out[len(p.out)-1]
}

// putWord writes a word, with a space where one separated it from another.
func (p *speller) putWord(w string) {
	switch last := p.lastByte(); {
	case last == ',':
		p.out = append(p.out, ' ')
	case !p.space || last == 0:
	case isWord(last) || last == '>' || last == ')' || last == '*' || last == '&' || last == '}' || last == ']':
		if len(p.open) == 0 && returnsEnableIf(p.out) {
			p.out = p.out[:0] // "enable_if<…>::type" is a return type
		} else {
			p.out = append(p.out, ' ')
		}
	}
	p.out = append(p.out, w...)
	p.space, p.after = false, afterOther
}

func returnsEnableIf(out []byte) bool {
	return bytes.HasSuffix(out, []byte("::type")) && (bytes.HasPrefix(out, []byte("std::enable_if<")) ||
		bytes.HasPrefix(out, []byte("enable_if<")))
}

// word reads an identifier, a keyword or a number.
func (p *speller) word() {
	rest := p.src[p.i:]
	w := rest[:run(rest, isWord)]
	p.i += len(w)
	switch {
	case w == "const", w == "void" && p.isReturnType():
		p.space = true
	case w == "true" && len(p.open) > 0:
		p.putWord("1")
	case w == "false" && len(p.open) > 0:
		p.putWord("0")
	case w == "operator":
		p.operator()
	case w == "lambda" && p.after == afterFunction && strings.HasPrefix(p.src[p.i:], "("):
		// ncu that cuts namespaces cuts "const::[" too: "operator ()() lambda() (instance 3)]".
		p.push('{', "::{lambda", 0)
		p.after = afterLambda
	case w == "lambda":
		p.putWord(w)
		p.after = afterLambda
	case w == "unnamed" && strings.HasPrefix(p.src[p.i:], ">::") && p.lastByte() != '<':
		p.i += len(">::") // the same ncu: "at::native::<unnamed>::X" became "unnamed>::X"
	case isDigit(w[0]):
		p.putWord(trimNumber(w))
	default:
		p.putWord(trimAddresses(w))
	}
}

// unnamed reads "<unnamed>". After an identifier its "<" opens template
// arguments, whose first lost its namespace up to "unnamed>::" (see word).
func (p *speller) unnamed() {
	if isWord(p.lastByte()) && !p.space && strings.HasPrefix(p.src[p.i+len(anonymous):], "::") {
		p.push('<', "<", len(anonymous)+len("::"))
		return
	}
	p.putWord(anonymous)
	p.i += len(anonymous)
}

// isReturnType reports whether the "void" just read is followed by a name.
func (p *speller) isReturnType() bool {
	if last := p.lastByte(); last != 0 && strings.IndexByte("<,(", last) < 0 {
		return false
	}
	rest := strings.TrimLeft(p.src[p.i:], " \t")
	if len(rest) == len(p.src[p.i:]) || strings.HasPrefix(rest, "const") && !isWordAt(rest, len("const")) {
		return false
	}
	return isWordAt(rest, 0) && !isDigit(rest[0]) || strings.HasPrefix(rest, anonymous) ||
		strings.HasPrefix(rest, "(anonymous namespace)")
}

// operators are those whose spelling holds a bracket, longest first.
var operators = []string{"()", "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"}

// operator writes "operator()" and the like, so that their brackets open nothing.
func (p *speller) operator() {
	p.putWord("operator")
	rest := strings.TrimLeft(p.src[p.i:], " \t")
	skipped := len(p.src) - p.i - len(rest)
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			p.put(op, skipped+len(op))
			p.after = afterFunction
			return
		}
	}
}

// paren reads a text that starts with "(": a namespace, a lambda's number, a cast, a parameter list, or a group that
// stays.
func (p *speller) paren(rest string) {
	const anon = "(anonymous namespace)"
	if strings.HasPrefix(rest, anon) {
		p.putWord(anonymous)
		p.i += len(anon)
		return
	}
	if m := instance.FindStringSubmatch(rest); m != nil {
		p.put("#"+m[1], len(m[0]))
		return
	}
	end := p.closing()
	last := p.lastByte()
	name := isWord(last) || last == '>' || last == '}'
	switch {
	case !name && end > 0 && isCast(p.src, p.i, end):
		p.i = end + 1
	case p.after == afterLambda && !p.space:
		p.push('(', "(", 1)
	case (name && !p.space || p.after == afterFunction) && end > 0:
		p.i = end + 1
		p.space, p.after = true, afterFunction
	case name && !p.space && len(p.open) == 0:
		p.i = len(p.src) // a list that was cut off
	default:
		if p.space && isWord(last) {
			p.out = append(p.out, ' ')
		}
		p.push('(', "(", 1)
	}
}

// instance is the number of a lambda.
var instance = regexp.MustCompile(`^\(instance (\d+)\)`)

// closing returns the index of the ")" that closes the "(" at p.i, or -1.
func (p *speller) closing() int {
	if p.close == nil {
		p.close = make([]int32, len(p.src))
		var stack []int32
		for i := range len(p.src) {
			p.close[i] = -1
			switch p.src[i] {
			case '(':
				stack = append(stack, int32(i))
			case ')':
				if n := len(stack); n > 0 {
					p.close[stack[n-1]] = int32(i)
					stack = stack[:n-1]
				}
			}
		}
	}
	return int(p.close[p.i])
}
