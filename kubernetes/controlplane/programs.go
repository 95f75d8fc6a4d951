package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// What kwok does with nodes and pods.
//
//go:embed stages.yaml
var stages []byte

// program is one of the plane's folder of programs, or a path.
func (p *Plane) program(name, path string, ready func(context.Context) error, args ...string) *Program {
	return &Program{name: name, path: p.config.find(path), args: args, log: p.logFile(name), ready: ready}
}

// find is where a program is that was given as a name or as a path.
func (c Config) find(program string) string {
	if strings.ContainsRune(program, filepath.Separator) {
		return program
	}
	return filepath.Join(c.Binaries, program)
}

// serves says nil once the address answers 200.
func (p *Plane) serves(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := p.get(ctx, url)
		return err
	}
}

// get reads a page of one of the plane's programs.
func (p *Plane) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %.200s", url, answer.Status, body)
	}
	return body, nil
}

func (p *Plane) etcd(port, peer int) *Program {
	at, peers := fmt.Sprintf("https://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", peer)
	return p.program("etcd", "etcd", p.serves(at+"/health"),
		"--name=plane", "--data-dir="+filepath.Join(p.dir, "etcd"),
		"--listen-client-urls="+at, "--advertise-client-urls="+at,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=plane="+peers,
		"--cert-file="+p.server.certFile, "--key-file="+p.server.keyFile,
		"--client-cert-auth", "--trusted-ca-file="+p.ca.file(),
		// Nobody needs the data after a power cut.
		"--unsafe-no-fsync", "--log-level=warn")
}

func (p *Plane) apiserver(port, etcd int) (*Program, error) {
	args := []string{
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", etcd),
		"--etcd-cafile=" + p.ca.file(), "--etcd-certfile=" + p.server.certFile, "--etcd-keyfile=" + p.server.keyFile,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + p.server.certFile, "--tls-private-key-file=" + p.server.keyFile,
		"--client-ca-file=" + p.ca.file(),
		"--authorization-mode=RBAC", "--allow-privileged",
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.server.certFile, "--service-account-signing-key-file=" + p.server.keyFile,
		// Nobody looks for this API server through its own Service.
		"--endpoint-reconciler-type=none",
	}
	// Pods need no credentials: nothing runs in them. Nodes are tainted until
	// they are ready only where a controller takes the taint away.
	off := []string{"ServiceAccount"}
	if !p.config.taints() {
		off = append(off, "TaintNodesByCondition")
	}
	args = append(args, "--disable-admission-plugins="+strings.Join(off, ","))
	if p.config.Audit {
		policy, err := p.auditPolicy()
		if err != nil {
			return nil, err
		}
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path="+p.auditFile())
	}
	if len(p.config.APIs) > 0 {
		args = append(args, "--runtime-config="+strings.Join(p.config.APIs, "=true,")+"=true")
	}
	return p.program("kube-apiserver", "kube-apiserver", p.serves(p.admin.Host+"/readyz"), append(args, p.config.gates()...)...), nil
}

func (p *Plane) controllerManager(port int) *Program {
	return p.program("kube-controller-manager", "kube-controller-manager", p.serves(fmt.Sprintf("https://127.0.0.1:%d/healthz", port)),
		slices.Concat([]string{
			"--kubeconfig=" + p.kubectl, "--leader-elect=false",
			"--controllers=" + strings.Join(p.config.Controllers, ","),
			"--service-account-private-key-file=" + p.server.keyFile, "--root-ca-file=" + p.ca.file(),
			"--kube-api-qps=200", "--kube-api-burst=400",
		}, p.serving(port, p.kubectl), p.config.gates())...)
}

// serving is how a program of Kubernetes serves health and metrics.
func (p *Plane) serving(port int, kubeconfig string) []string {
	return []string{
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + p.server.certFile, "--tls-private-key-file=" + p.server.keyFile,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
	}
}

func (c Config) gates() []string {
	if len(c.FeatureGates) == 0 {
		return nil
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		all = append(all, fmt.Sprintf("%s=%t", name, c.FeatureGates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(all, ",")}
}

func (p *Plane) kwok(port int) (*Program, error) {
	file := filepath.Join(p.dir, "stages.yaml")
	if err := os.WriteFile(file, stages, 0o600); err != nil {
		return nil, err
	}
	// Leases matter to the controller that watches nodes; without it they
	// would only load the API server.
	lease := 0
	if p.config.taints() {
		lease = 40
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	return p.program("kwok", "kwok", p.serves("http://"+at+"/healthz"),
		"--kubeconfig="+p.kubectl, "--config="+file, "--manage-all-nodes",
		"--server-address="+at, fmt.Sprintf("--node-lease-duration-seconds=%d", lease)), nil
}

// kubeconfig writes a file with which the owner of a certificate reaches the plane.
func (p *Plane) kubeconfig(name string, who pair) (string, error) {
	c := api.NewConfig()
	c.Clusters["plane"] = &api.Cluster{Server: p.admin.Host, CertificateAuthorityData: p.ca.pem}
	c.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: who.cert, ClientKeyData: who.key}
	c.Contexts["plane"] = &api.Context{Cluster: "plane", AuthInfo: name}
	c.CurrentContext = "plane"
	path := filepath.Join(p.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	return path, nil
}
