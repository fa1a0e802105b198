package loadfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kinds of failure of a request. There is no other text in a result that comes from a server's answers.
const (
	Connect     = "connect"      // no connection
	Reset       = "reset"        // the connection broke before an answer
	Timeout     = "timeout"      // no whole answer in time
	BadStream   = "bad_stream"   // what came is not an answer of the API
	CutStream   = "cut_stream"   // the answer broke off
	ServerError = "server_error" // the answer says that the server failed
	NoOutput    = "no_output"    // a whole answer without a token
	ClientLimit = "client_limit" // this machine cannot open more connections
	Other       = "other"
)

// Kinds lists them.
var Kinds = []string{BadStream, ClientLimit, Connect, CutStream, NoOutput, Other, Reset, ServerError, Timeout}

// HTTPStatus is the kind of an answer with this status.
func HTTPStatus(status int) string {
	if status < 100 || status > 599 {
		return Other
	}
	return fmt.Sprintf("http_%d", status)
}

// knownKind is kind, or Other if nobody could have written it.
func knownKind(kind string) string {
	status, _ := strconv.Atoi(strings.TrimPrefix(kind, "http_"))
	if slices.Contains(Kinds, kind) || kind == HTTPStatus(status) {
		return kind
	}
	return Other
}
