package prometheus

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Client asks a Prometheus server. It is safe for concurrent use.
type Client struct {
	server  string
	token   string
	headers map[string]string
	http    *http.Client
}

const (
	queryTimeout = 2 * time.Minute
	maxAnswer    = 1 << 30 // bytes
)

// Open makes a client; it does not call the server.
func Open(c Config) (*Client, error) {
	if c.Server == "" {
		return nil, errors.New("server: missing; give the address of Prometheus, such as http://127.0.0.1:9090")
	}
	out := &Client{server: strings.TrimRight(c.Server, "/"), headers: c.Headers, http: &http.Client{Timeout: queryTimeout}}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		out.token = strings.TrimSpace(string(text))
	}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_file: %s: no PEM certificate in it", c.CAFile)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		out.http.Transport = transport
	}
	return out, nil
}

// Range asks for the values of a query from one time to another, both included.
func (c *Client) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (series []Series, warnings []string, err error) {
	form := url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)},
		"step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	const tries = 4
	for try := 1; ; try++ {
		var passing bool
		series, warnings, passing, err = c.once(ctx, form)
		if err == nil || !passing || try == tries {
			break
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("prometheus at %s: query %.200q: %w", c.server, query, err)
	}
	return series, warnings, err
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// once says whether the error may pass.
func (c *Client) once(ctx context.Context, form url.Values) (series []Series, warnings []string, passing bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, nil, false, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", "cotenant")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	for k, v := range c.headers {
		req.Header.Set(k, v)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, false, ctx.Err()
		}
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return nil, nil, true, fmt.Errorf("not reached: %w; is it up, and is the address right?", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, nil, ctx.Err() == nil, fmt.Errorf("the answer broke off: %w", err)
	}
	passing = res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500
	series, warnings, err = ParseMatrix(bytes.NewReader(body))
	var said *Error
	switch {
	case errors.As(err, &said):
		return nil, warnings, passing && !said.tooMuch(), err
	case res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden:
		return nil, nil, false, fmt.Errorf("%s; give token_file or headers", strings.ToLower(res.Status))
	case res.StatusCode != http.StatusOK:
		return nil, nil, passing, fmt.Errorf("answered %s; is that address Prometheus'?", res.Status)
	}
	return series, warnings, false, err
}

// tooMuch reports whether the server refused for the size of the answer: a
// shorter time may do.
func (e *Error) tooMuch() bool {
	return e.Kind == "timeout" || strings.Contains(e.words, "too many samples") || strings.Contains(e.words, "maximum resolution") ||
		strings.Contains(e.words, "timed out")
}
