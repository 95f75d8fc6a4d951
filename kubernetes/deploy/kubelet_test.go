package deploy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
	"github.com/cotenant/cotenant/kubernetes/deploy/image"
)

// kubelet starts what a pod says, from the image's tarball: in a root of its
// own, as the pod's user, with its arguments, its ConfigMaps as files and its
// ServiceAccount's token. What it does not know of in a pod is an error. Pods
// have no network of their own here, so each gets a port that is free.
type kubelet struct {
	*testing.T
	plane *controlplane.Plane
	tar   string
}

// newKubelet skips where the image is not made or may not be started.
func newKubelet(t *testing.T, plane *controlplane.Plane) *kubelet {
	tar, err := filepath.Abs("../bin/cotenant-scheduler.tar")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tar); err != nil {
		t.Skip("kubernetes/bin/cotenant-scheduler.tar is not made; run: make kubernetes-image")
	}
	if os.Getuid() != 0 {
		t.Skip("only root may start a container")
	}
	return &kubelet{t, plane, tar}
}

// replica is a pod that runs.
type replica struct {
	*controlplane.Program
	name    string
	address string // https://127.0.0.1:port
	root    string
	pod     *corev1.Pod
	probes  corev1.Container
}

var insecure = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, // as a kubelet's probes
}

// run starts the only container of a pod and waits until it is ready.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod) *replica {
	k.Helper()
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
		k.Fatalf("pod %s has other containers than one", pod.Name)
	}
	c := pod.Spec.Containers[0]
	root := k.TempDir()
	config, err := image.Unpack(k.tar, root)
	if err != nil {
		k.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		k.Fatal(err)
	}
	r := &replica{name: pod.Name, root: root, pod: pod, probes: c}
	for _, m := range c.VolumeMounts {
		k.mount(ctx, r, m)
	}
	k.credentials(ctx, r)
	port := freePort(k.T)
	r.address = fmt.Sprintf("https://127.0.0.1:%d", port)
	api, err := url.Parse(k.plane.REST().Host)
	if err != nil {
		k.Fatal(err)
	}
	command := config.Entrypoint
	if len(c.Command) > 0 {
		command = c.Command
	}
	env := append([]string{}, config.Env...)
	fields := map[string]string{"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID)}
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = fields[e.ValueFrom.FieldRef.FieldPath]
		}
		if value == "" {
			k.Fatalf("pod %s: variable %s", pod.Name, e.Name)
		}
		env = append(env, e.Name+"="+value)
	}
	env = append(env, "KUBERNETES_SERVICE_HOST="+api.Hostname(), "KUBERNETES_SERVICE_PORT="+api.Port())
	r.Program, err = k.plane.StartContainer(ctx, controlplane.Container{
		Name: pod.Name, Root: root, User: int(*pod.Spec.SecurityContext.RunAsUser), Env: env,
		Command: append(append(append([]string{}, command...), c.Args...), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port)),
		Ready:   func(ctx context.Context) error { return r.probe(ctx, c.ReadinessProbe) },
	})
	if err != nil {
		k.Fatal(err)
	}
	return r
}

// credentials are where every pod has them: what the ServiceAccount may, and
// nothing more.
func (k *kubelet) credentials(ctx context.Context, r *replica) {
	k.Helper()
	hour := int64(3600)
	answer, err := k.plane.Client().CoreV1().ServiceAccounts(r.pod.Namespace).CreateToken(ctx, r.pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: &hour,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: r.pod.Name, UID: r.pod.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.Fatal(err)
	}
	k.project(r, "/var/run/secrets/kubernetes.io/serviceaccount", map[string][]byte{
		"token": []byte(answer.Status.Token), "ca.crt": k.plane.REST().CAData, "namespace": []byte(r.pod.Namespace),
	})
}

func (k *kubelet) mount(ctx context.Context, r *replica, m corev1.VolumeMount) {
	k.Helper()
	for _, v := range r.pod.Spec.Volumes {
		if v.Name != m.Name {
			continue
		}
		if v.ConfigMap == nil || m.SubPath != "" {
			k.Fatalf("pod %s: volume %s is of no kind that is known here", r.name, v.Name)
		}
		files, err := k.plane.Client().CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && v.ConfigMap.Optional != nil && *v.ConfigMap.Optional {
			files, err = &corev1.ConfigMap{}, nil // as a kubelet: the folder is there, and empty
		}
		if err != nil {
			k.Fatal(err)
		}
		content := map[string][]byte{}
		for name, text := range files.Data {
			content[name] = []byte(text)
		}
		for name, data := range files.BinaryData {
			content[name] = data
		}
		k.project(r, m.MountPath, content)
		return
	}
	k.Fatalf("pod %s: no volume %s", r.name, m.Name)
}

// sync brings changed ConfigMaps to a pod that runs, as a kubelet does within a
// minute or two.
func (k *kubelet) sync(ctx context.Context, r *replica) {
	k.Helper()
	for _, m := range r.probes.VolumeMounts {
		k.mount(ctx, r, m)
	}
}

// project writes files the way that a kubelet does: into a new folder, to which
// the link ..data is then turned at once, and each file is a link through it.
func (k *kubelet) project(r *replica, path string, files map[string][]byte) {
	k.Helper()
	dir := filepath.Join(r.root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		k.Fatal(err)
	}
	fresh, err := os.MkdirTemp(dir, "..")
	if err != nil {
		k.Fatal(err)
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		k.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), content, 0o644); err != nil {
			k.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			k.Fatal(err)
		}
	}
	next := filepath.Join(dir, "..data_tmp")
	if err := os.Symlink(filepath.Base(fresh), next); err != nil {
		k.Fatal(err)
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // none at first
	if err := os.Rename(next, filepath.Join(dir, "..data")); err != nil {
		k.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			k.Fatal(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// probe asks what a kubelet asks.
func (r *replica) probe(ctx context.Context, p *corev1.Probe) error {
	if p == nil || p.HTTPGet == nil || p.HTTPGet.Scheme != corev1.URISchemeHTTPS || p.HTTPGet.Port.StrVal != r.probes.Ports[0].Name {
		return fmt.Errorf("probe %+v is not HTTPS at the container's port", p)
	}
	code, text, err := r.get(ctx, p.HTTPGet.Path, "")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s: %d: %.300s", p.HTTPGet.Path, code, text)
	}
	return err
}

// get reads a page, with a token where there is one.
func (r *replica) get(ctx context.Context, path, token string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := insecure.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// said is what the process wrote to its log.
func (r *replica) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(r.Log())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// complaints are lines of the log that tell of a right that lacks.
func (r *replica) complaints(t *testing.T) (all []string) {
	for line := range strings.Lines(r.said(t)) {
		if strings.Contains(line, "] FLAG: ") {
			continue // what it was started with
		}
		if strings.Contains(line, "orbidden") || strings.Contains(line, "nauthorized") || strings.Contains(line, "cannot ") {
			all = append(all, line)
		}
	}
	return all
}
