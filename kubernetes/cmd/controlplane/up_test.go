package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/kubernetes/controlplane/planetest"
)

// TestUpWithOurs does what docs/kubernetes.md has a newcomer do: the example is
// placed by our plans, other pods by the stock scheduler, and both tell of
// themselves where they say so.
func TestUpWithOurs(t *testing.T) {
	planetest.Needs(t, "kube-scheduler", "kube-controller-manager", "cotenant-scheduler")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log bytes.Buffer
	read, write := io.Pipe()
	root := newRoot()
	root.SetArgs(strings.Fields("up --ours"))
	root.SetOut(write)
	root.SetErr(&log)
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		_ = write.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(<-ended)
	}
	said := log.String() // all of it was written before that line
	kubeconfig := strings.TrimSpace(strings.TrimPrefix(line, "export KUBECONFIG="))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../../examples/deployments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[bool]int{} // pods, by whether a decision of ours is to be recorded
	for i, text := range strings.Split(string(example), "\n---\n") {
		var ours appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(text), &ours); err != nil {
			t.Fatal(err)
		}
		stock, one := ours.DeepCopy(), int32(1)
		stock.Spec.Replicas = &one
		want[true] += int(*ours.Spec.Replicas)
		want[false]++
		stock.Name, stock.Spec.Template.Spec.SchedulerName = fmt.Sprintf("stock-%d", i), ""
		stock.Spec.Selector.MatchLabels["app"], stock.Spec.Template.Labels["app"] = stock.Name, stock.Name
		for _, d := range []*appsv1.Deployment{&ours, stock} {
			if _, err := client.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	placed := map[bool]int{}
	for deadline := time.Now().Add(time.Minute); !maps.Equal(placed, want); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("pods that were placed, by whether ours decided: %v, want %v", placed, want)
		}
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		clear(placed)
		for _, p := range pods.Items {
			if p.Spec.NodeName != "" {
				placed[p.Annotations["cotenant.dev/decision"] != ""]++
			}
		}
	}
	pages := regexp.MustCompile(`curl --cacert (\S+) (\S+)`).FindAllStringSubmatch(said, -1)
	if len(pages) != 2 || !strings.Contains(said, "schedulerName: cotenant-scheduler\n") {
		t.Fatalf("it says\n%s", said)
	}
	if page := fetch(t, pages[1][1], pages[1][2]); !strings.Contains(page, "cotenant_pods_decided_total") {
		t.Errorf("%s has no metric of ours", pages[1][2])
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("%s after the end: %v", kubeconfig, err)
	}
}

// fetch is what curl --cacert prints.
func fetch(t *testing.T, ca, url string) string {
	t.Helper()
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		t.Fatal(ca, err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s (%v)", url, answer.Status, err)
	}
	return string(body)
}
