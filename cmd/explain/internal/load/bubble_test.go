package load

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// pipes is a network in memory. In a bubble of synctest it has no time of its own: what a script says takes exactly so long.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errRefused = &net.AddrError{Err: "connection refused", Addr: "pipe"}

// ran is what a run in a bubble gave.
type ran struct {
	res  *Result
	err  error
	took time.Duration
	srv  *fakeserver.Server
}

// drive runs a load against a server by script, without real time or network. A script that dies takes the
// listener with it.
func drive(t *testing.T, script fakeserver.Script, opt Options, check func(t *testing.T, r ran)) {
	t.Helper()
	driveCtx(t, context.Background(), script, opt, check)
}

func driveCtx(t *testing.T, ctx context.Context, script fakeserver.Script, opt Options, check func(t *testing.T, r ran)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := newPipes()
		hs := &http.Server{IdleTimeout: 5 * time.Second} // as uvicorn has it
		closed := make(chan struct{})
		script.OnDie = func() { go hs.Close() }
		srv := fakeserver.New(script)
		hs.Handler = srv
		go func() { _ = hs.Serve(net); close(closed) }()
		opt.dial = net.dial
		if opt.HealthTimeout == 0 {
			opt.HealthTimeout = DefaultHealthTimeout
		}
		start := time.Now()
		res, err := Run(ctx, opt)
		took := time.Since(start)
		hs.Close()
		<-closed
		check(t, ran{res, err, took, srv})
	})
}
