package load

import (
	"context"
	"net"
	"sync"
	"time"
)

// arrival is a connection that records when bytes last arrived at its socket. net/http passes them on through a buffer
// and another goroutine, so a body is read later than its bytes arrive.
type arrival struct {
	net.Conn
	mu sync.Mutex
	at time.Time
}

func (a *arrival) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 {
		now := time.Now()
		a.mu.Lock()
		a.at = now
		a.mu.Unlock()
	}
	return n, err
}

// last returns when bytes last arrived.
func (a *arrival) last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// timed wraps dial so that each connection records its last read.
func (dial dialer) timed(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &arrival{Conn: c}, nil
}

// arrivalOf finds the arrival under a connection that may be encrypted; nil if there is none.
func arrivalOf(c net.Conn) *arrival {
	for {
		switch v := c.(type) {
		case *arrival:
			return v
		case interface{ NetConn() net.Conn }:
			c = v.NetConn()
		default:
			return nil
		}
	}
}
