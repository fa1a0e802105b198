package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What is read late came in when it came in, also below encryption.
func TestArrivalIsWhenTheSocketWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		dial := dialer(func(context.Context, string, string) (net.Conn, error) { return ours, nil })
		c, err := dial.timed(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		go func() {
			time.Sleep(3 * ms)
			_, _ = io.WriteString(theirs, "token")
			theirs.Close()
		}()
		if b, err := io.ReadAll(c); string(b) != "token" || err != nil {
			t.Fatalf("%q %v", b, err)
		}
		time.Sleep(10 * ms)
		below := arrivalOf(tls.Client(c, &tls.Config{ServerName: "x"}))
		if below == nil || below.last().Sub(start) != 3*ms {
			t.Errorf("%+v", below)
		}
		if arrivalOf(theirs) != nil {
			t.Error("a connection of somebody else is known")
		}
	})
}

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
