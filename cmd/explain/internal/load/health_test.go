package load

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"syscall"
	"testing"
)

// An error that cannot go away ends the wait at once; one of a server that is still starting does not.
func TestFinalErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		final bool
	}{
		{&net.DNSError{Err: "no such host", IsNotFound: true}, true},
		{&net.DNSError{Err: "server misbehaving", IsTemporary: true}, false},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, true},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false},
	} {
		if err := (&url.Error{Op: "Get", URL: "http://x", Err: c.err}); isFinal(err) != c.final {
			t.Errorf("%v: final %v", c.err, !c.final)
		}
	}
}
