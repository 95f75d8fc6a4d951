package serve_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/cotenant/cotenant/serve"
	balancev1 "github.com/cotenant/cotenant/serve/proto/cotenant/balance/v1"
)

func TestListenRefusesTheWorldWithoutAToken(t *testing.T) {
	for _, c := range []struct {
		l    serve.Listener
		want string // part of the error; "" for none
	}{
		{serve.Listener{Address: "127.0.0.1:0"}, ""},
		{serve.Listener{Address: "localhost:0"}, ""},
		{serve.Listener{Address: "127.9.9.9:0"}, ""},
		{serve.Listener{Address: ":0"}, "no token"},
		{serve.Listener{Address: "0.0.0.0:0"}, "no token"},
		{serve.Listener{Address: "[::]:0"}, "no token"},
		{serve.Listener{Address: "example.com:0"}, "no token"},
		{serve.Listener{Address: ":0", Token: "sesame"}, ""},
		{serve.Listener{Address: ":0", Insecure: true}, ""},
		{serve.Listener{Address: "127.0.0.1"}, "host:port"},
		{serve.Listener{Address: "127.0.0.1:0", Cert: "cert.pem"}, "key"},
		{serve.Listener{Address: "127.0.0.1:0", Cert: "absent.pem", Key: "key.pem"}, "absent.pem"},
	} {
		at, err := c.l.Listen()
		if err == nil {
			at.Close()
		}
		if err == nil != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.l, err, c.want)
		}
	}
}

// certificate writes one for 127.0.0.1 and its key.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	l := serve.Listener{Address: "127.0.0.1:0", Cert: cert, Key: key}
	at, err := l.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, at, serve.Handler(coordinator(t, serve.Options{}), "")) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport}
	url := "https://" + at.Addr().String()
	for name, options := range map[string][]connect.ClientOption{"gRPC": {connect.WithGRPC()}, "JSON": {connect.WithProtoJSON()}} {
		got, err := balancev1.NewBalanceServiceClient(client, url, options...).Open(ctx,
			&balancev1.OpenRequest{Job: name, GlobalBatch: 7, Workers: workers(2)})
		if err != nil || got.GetGeneration() != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	transport.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestOpenRequestsAreAnsweredAtTheEnd(t *testing.T) {
	l := serve.Listener{Address: "127.0.0.1:0"}
	at, err := l.Listen()
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, at, slow) }()
	status := make(chan int, 1)
	go func() {
		got, err := http.Get("http://" + at.Addr().String())
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		got.Body.Close()
		status <- got.StatusCode
	}()
	<-entered
	stop()
	close(release)
	if s := <-status; s != http.StatusOK {
		t.Errorf("a request that was open when the server ended: %d", s)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhileAlive(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Skip("no program sleep: ", err)
	}
	ctx, stop, err := serve.WhileAlive(context.Background(), child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if ctx.Err() != nil {
		t.Error("ended while the process runs")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Error("goes on a minute after the process's end")
	}
	if _, _, err := serve.WhileAlive(context.Background(), child.Process.Pid); err == nil {
		t.Error("of a process that has ended: no error")
	}
}
