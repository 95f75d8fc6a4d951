package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// drain is how long open requests may take after the end was asked for.
const drain = 10 * time.Second

// Listener is where a server answers, and how.
type Listener struct {
	// Address is host:port; port 0 is any that is free.
	Address string
	// Token is asked of everybody; "" asks none.
	Token string
	// Cert and Key are files in PEM; both empty serve without TLS.
	Cert, Key string
	// Insecure allows an address that others reach without a token.
	Insecure bool
}

// Listen opens the port. Without a token it refuses addresses that other
// machines reach.
func (l Listener) Listen() (net.Listener, error) {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w; give host:port, such as 127.0.0.1:8275", l.Address, err)
	}
	if (l.Cert == "") != (l.Key == "") {
		return nil, errors.New("TLS needs both a certificate and its key")
	}
	if l.Cert != "" {
		// Now, and not when the first client comes.
		if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
			return nil, fmt.Errorf("certificate %s and key %s: %w", l.Cert, l.Key, err)
		}
	}
	if l.Token == "" && !l.Insecure && !loopback(host) {
		return nil, fmt.Errorf("address %q can be reached by other machines, and no token is asked; set a token, or allow it with --insecure", l.Address)
	}
	return net.Listen("tcp", l.Address)
}

// loopback says whether a host is this machine's own. Of names only localhost
// is, since others may resolve to anything later.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Serve answers until the context ends, and then lets open requests finish.
// HTTP/2 needs no TLS: gRPC clients begin with it at once.
func (l Listener) Serve(ctx context.Context, at net.Listener, h http.Handler) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: h, Protocols: protocols, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 10 * time.Minute,
	}
	ended := make(chan error, 1)
	go func() {
		if l.Cert != "" {
			ended <- server.ServeTLS(at, l.Cert, l.Key)
		} else {
			ended <- server.Serve(at)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("requests were still open after %s", drain), server.Close())
	}
	if last := <-ended; !errors.Is(last, http.ErrServerClosed) {
		err = errors.Join(err, last)
	}
	return err
}

// WhileAlive gives a context that ends when a process does, looked at twice a
// second: a parent that was killed leaves no coordinator behind. It is an error
// if there is no such process.
func WhileAlive(ctx context.Context, pid int) (context.Context, context.CancelFunc, error) {
	p, err := os.FindProcess(pid)
	if err != nil || !alive(p) {
		return nil, nil, fmt.Errorf("no process %d: it has ended already", pid)
	}
	// A dead parent may linger until somebody asks for its exit code, but its
	// children have another one at once.
	child := os.Getppid() == pid
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !alive(p) || child && os.Getppid() != pid {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel, nil
}
