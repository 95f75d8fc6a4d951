package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Config says what a plane consists of. The zero value is etcd, kube-apiserver
// and kwok, with the features of the release as they are by default.
type Config struct {
	// Binaries is the folder of the programs; "" is what Binaries finds.
	Binaries string
	// FeatureGates are switched in all of Kubernetes' programs, schedulers too.
	FeatureGates map[string]bool
	// APIs are switched on beside those that are on by default, such as
	// "scheduling.k8s.io/v1beta1".
	APIs []string
	// Controllers of kube-controller-manager, as its flag takes them ("*" is
	// all that are on by default). With none, it is not started: Deployments
	// and Jobs make no pods and volumes stay unbound. Nodes that are not ready
	// are tainted where "*" or NodeLifecycle is among them.
	Controllers []string
	// Audit has the API server write down who asked what of it, and whether he
	// was let: AuditLog reads it.
	Audit bool
	// Log gets a line for each program: its version and process id. nil drops them.
	Log io.Writer
}

// NodeLifecycle is the controller that taints nodes by their conditions.
const NodeLifecycle = "node-lifecycle-controller"

// taints tells whether a controller watches over the nodes.
func (c Config) taints() bool {
	return slices.Contains(c.Controllers, "*") || slices.Contains(c.Controllers, NodeLifecycle)
}

// WithGangs switches on the native API for gangs, PodGroup and Workload, which
// is off by default in 1.37, and the placement of groups by topology.
func (c Config) WithGangs() Config {
	gates := map[string]bool{"GenericWorkload": true, "TopologyAwareWorkloadScheduling": true}
	for name, on := range c.FeatureGates {
		gates[name] = on
	}
	c.FeatureGates = gates
	c.APIs = append(slices.Clone(c.APIs), "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")
	return c
}

// Plane is a control plane that runs.
type Plane struct {
	// Etcd, APIServer, Kwok and, where it was asked for, Controllers: to be
	// killed and started again by those who test what happens then.
	Etcd, APIServer, Controllers, Kwok *Program

	config   Config
	dir      string
	ca       *authority
	server   pair // what every program serves with
	admin    *rest.Config
	client   *kubernetes.Clientset
	http     *http.Client
	kubectl  string // kubeconfig of the administrator
	mu       sync.Mutex
	programs []*Program // in the order in which they were started
	stopped  bool
}

// Start runs a control plane and waits until it serves; the context limits the
// start, not its life, which Stop ends.
func Start(ctx context.Context, c Config) (*Plane, error) {
	if c.Binaries == "" {
		found, err := Binaries()
		if err != nil {
			return nil, err
		}
		c.Binaries = found
	}
	if c.Log == nil {
		c.Log = io.Discard
	}
	// Between finding a port free and listening on it another program can take
	// it; then all start anew on others.
	for attempt := 1; ; attempt++ {
		p, err := start(ctx, c)
		if err == nil || attempt == 3 || !strings.Contains(err.Error(), "address already in use") {
			return p, err
		}
	}
}

func start(ctx context.Context, c Config) (*Plane, error) {
	dir, err := os.MkdirTemp("", "cotenant-plane-")
	if err != nil {
		return nil, err
	}
	p := &Plane{config: c, dir: dir}
	if err := p.startAll(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Plane) startAll(ctx context.Context) error {
	var err error
	if p.ca, err = newAuthority(p.dir); err != nil {
		return err
	}
	if p.server, err = p.ca.issue("server", "cotenant-control-plane"); err != nil {
		return err
	}
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	etcd, peer, api, controllers, kwok := ports[0], ports[1], ports[2], ports[3], ports[4]
	if err := p.connect(api); err != nil {
		return err
	}
	p.Etcd = p.etcd(etcd, peer)
	if p.APIServer, err = p.apiserver(api, etcd); err != nil {
		return err
	}
	if p.Kwok, err = p.kwok(kwok); err != nil {
		return err
	}
	for _, program := range []*Program{p.Etcd, p.APIServer} {
		if err := p.run(ctx, program); err != nil {
			return err
		}
	}
	if len(p.config.Controllers) > 0 {
		p.Controllers = p.controllerManager(controllers)
		if err := p.run(ctx, p.Controllers); err != nil {
			return err
		}
	}
	return p.run(ctx, p.Kwok)
}

// connect makes the administrator's credentials and clients.
func (p *Plane) connect(port int) error {
	who, err := p.ca.issue("admin", "cotenant-administrator", "system:masters")
	if err != nil {
		return err
	}
	p.admin = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", port),
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.pem, CertData: who.cert, KeyData: who.key},
		QPS:             -1, // who tests a scheduler must not be slower than it
	}
	if p.client, err = kubernetes.NewForConfig(p.admin); err != nil {
		return fmt.Errorf("client of %s: %w", p.admin.Host, err)
	}
	cert, err := tls.X509KeyPair(who.cert, who.key)
	if err != nil {
		return fmt.Errorf("administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(p.ca.cert)
	p.http = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
	}}
	p.kubectl, err = p.kubeconfig("admin", who)
	return err
}

// run starts a program, waits until it serves, and logs what it is.
func (p *Plane) run(ctx context.Context, program *Program) error {
	p.mu.Lock()
	p.programs = append(p.programs, program)
	p.mu.Unlock()
	begin := time.Now()
	if err := program.Start(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.config.Log, "%s %s, process %d, ready after %.1f s\n", program.name, Version(program.file()), program.PID(), time.Since(begin).Seconds())
	return err
}

// Stop ends what the plane started, last first, and removes its folder. It may
// be called again.
func (p *Plane) Stop() error {
	p.mu.Lock()
	programs := slices.Clone(p.programs)
	done := p.stopped
	p.stopped = true
	p.mu.Unlock()
	if done {
		return nil
	}
	var failed []error
	for _, program := range slices.Backward(programs) {
		failed = append(failed, program.Stop())
	}
	if p.http != nil {
		p.http.CloseIdleConnections()
	}
	return errors.Join(append(failed, os.RemoveAll(p.dir))...)
}

// Wait returns nil when the context is done, and an error with the end of its
// log when a program ended that nobody stopped.
func (p *Plane) Wait(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		p.mu.Lock()
		programs := slices.Clone(p.programs)
		p.mu.Unlock()
		for _, program := range programs {
			if err := program.Died(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Kubeconfig is the path of a file with which kubectl and others reach the
// plane as its administrator. It is gone after Stop.
func (p *Plane) Kubeconfig() string { return p.kubectl }

// CA is the path of the certificate that all of the plane's own are signed by.
func (p *Plane) CA() string { return p.ca.file() }

// Dir is the plane's folder, with the programs' logs; it is gone after Stop.
func (p *Plane) Dir() string { return p.dir }

// REST is a copy of the administrator's connection, without client limits.
func (p *Plane) REST() *rest.Config { return rest.CopyConfig(p.admin) }

// Client talks to the plane as its administrator, without client limits.
func (p *Plane) Client() kubernetes.Interface { return p.client }

// freePorts finds ports of 127.0.0.1 that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // all are held until all are found, so that no two are the same
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (p *Plane) logFile(name string) string { return filepath.Join(p.dir, name+".log") }
