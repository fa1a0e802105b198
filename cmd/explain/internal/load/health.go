package load

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Intervals and limits for health requests.
const (
	pollEvery   = 200 * time.Millisecond
	pollTimeout = 5 * time.Second // for one request
)

// waitHealthy waits until the server answers /health with 200. A server without /health is healthy once it lists its
// models.
func (c *client) waitHealthy(ctx context.Context, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	path, last := "/health", "it was not asked"
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return failf(ErrNotHealthy,
				"the server did not become healthy within %s: %s; start it, name its address with --url, or wait longer with --health-timeout",
				timeout, last)
		}
		status, _, err := c.get(ctx, path, min(left, pollTimeout))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrNotHealthy):
			return err
		case isFinal(err):
			return failf(ErrNotHealthy, "the server cannot be reached: %s", reason(err))
		case err != nil:
			last = reason(err)
		case status == http.StatusOK:
			return nil
		case status == http.StatusNotFound && path == "/health":
			path = "/v1/models"
			continue
		default:
			last = fmt.Sprintf("%s answers HTTP %d", path, status)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(pollEvery, max(time.Until(deadline), time.Millisecond))):
		}
	}
}

// isFinal reports whether waiting for the server cannot help: its host name does not exist, or its certificate is not
// trusted.
func isFinal(err error) bool {
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &verify)
}

// reason describes why a request to the server failed.
func reason(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return "its host name is not known; look at --url"
	case errors.Is(err, context.DeadlineExceeded):
		return "it accepts connections and does not answer"
	case errors.As(err, &op) && op.Op == "dial":
		return "nothing accepts connections there"
	case isTLS(err):
		return "its certificate was refused; " + certificateRemedy
	}
	return "its answer is not HTTP, or it breaks the connection"
}

// get sends a GET request and reads its short answer. A server that wants a key is an error.
func (c *client) get(ctx context.Context, path string, timeout time.Duration) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header = c.header
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return 0, nil, failf(ErrNotHealthy,
			"the server wants a key (HTTP %d for %s): name the environment variable that holds it with --api-key-env",
			res.StatusCode, path)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, 4<<20))
	return res.StatusCode, body, err
}

// firstModel returns the first model that the server lists.
func (c *client) firstModel(ctx context.Context, timeout time.Duration) (string, error) {
	const remedy = "name the model with --model"
	status, body, err := c.get(ctx, "/v1/models", min(timeout, 2*pollTimeout))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, ErrNotHealthy):
		return "", err
	case err != nil:
		return "", failf(ErrNotHealthy, "the server does not say which model it serves: %s; %s", reason(err), remedy)
	case status != http.StatusOK:
		return "", failf(ErrNotHealthy,
			"the server does not say which model it serves (/v1/models answers HTTP %d); %s", status, remedy)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", failf(ErrNotHealthy, "the server does not say which model it serves (/v1/models lists none); %s",
			remedy)
	}
	return list.Data[0].ID, nil
}
