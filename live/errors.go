package live

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// StatusError is a refusal by the API server.
type StatusError struct {
	// Code is the HTTP status.
	Code  int
	words string
}

func (e *StatusError) Error() string { return e.words }

// refused puts the API server's refusal and the remedy into words.
func (c *Cluster) refused(path string, code int, body []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	said := ""
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		said = ": " + status.Message
	}
	path, _, _ = strings.Cut(path, "?")
	remedy := ""
	switch code {
	case http.StatusUnauthorized:
		remedy = "; the server does not know these credentials: log in again, or name another context"
	case http.StatusForbidden:
		remedy = "; grant the verb list on it (docs/kubernetes.md, \"Reading a cluster\"), or name another context"
	case http.StatusNotFound:
		remedy = "; is that address an API server?"
	}
	return &StatusError{code, fmt.Sprintf("%s: %s: %s%s%s", c.Name(), path, strings.ToLower(http.StatusText(code)), said, remedy)}
}

// unreached says why no answer came.
func (c *Cluster) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // the address is named anyway
	}
	remedy := "is it up, and is the address right?"
	var name *net.DNSError
	var timed net.Error
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return fmt.Errorf("%s: its certificate is not trusted: %w; the kubeconfig's certificate-authority is of another cluster, or outdated", c.Name(), err)
	case errors.As(err, &name):
		remedy = "the name of the server is not known here"
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy = "nothing listens there: is the cluster up?"
	case errors.As(err, &timed) && timed.Timeout():
		remedy = fmt.Sprintf("no answer within %s: is a proxy or a VPN needed?", timeout)
	}
	return fmt.Errorf("%s: not reached: %w; %s", c.Name(), err, remedy)
}
