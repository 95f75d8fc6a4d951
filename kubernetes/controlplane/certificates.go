package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one plane; it is made for it and its key
// never leaves memory.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

// pair is a certificate with its key, as PEM and as files.
type pair struct {
	cert, key         []byte
	certFile, keyFile string
}

// lifetime of certificates: a plane is for a test or an afternoon.
const lifetime = 30 * 24 * time.Hour

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "cotenant control plane"},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	a := &authority{dir: dir, key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	return a, os.WriteFile(a.file(), a.pem, 0o600)
}

func (a *authority) file() string { return filepath.Join(a.dir, "ca.crt") }

// issue makes a certificate for clients and for servers on this machine. user
// and groups are what the API server reads in it.
func (a *authority) issue(name, user string, groups ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("key of %s: %w", name, err)
	}
	p := pair{
		cert:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:      pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		certFile: filepath.Join(a.dir, name+".crt"),
		keyFile:  filepath.Join(a.dir, name+".key"),
	}
	if err := os.WriteFile(p.certFile, p.cert, 0o600); err != nil {
		return pair{}, err
	}
	return p, os.WriteFile(p.keyFile, p.key, 0o600)
}
