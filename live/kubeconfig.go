package live

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/internal/misfit"
)

// timeout bounds a request: a server that says nothing for this long is down.
const timeout = 30 * time.Second

// maxKubeconfig bounds what is taken for a kubeconfig, in bytes: real ones are
// far smaller, and snapshots of clusters, which share the flag, far larger.
const maxKubeconfig = 4 << 20

// ofConfig is the line that tells a kubeconfig from a snapshot.
var ofConfig = regexp.MustCompile(`(?:^|[\n{,])\s*["']?kind["']?\s*:\s*["']?Config["']?\s*(?:[\n\r,}]|$)`)

// IsKubeconfig reports whether the content of a file is a kubeconfig.
func IsKubeconfig(content []byte) bool {
	if len(content) > maxKubeconfig || !ofConfig.Match(content) {
		return false
	}
	var top struct {
		Kind string `json:"kind"`
	}
	return yaml.Unmarshal(content, &top) == nil && top.Kind == "Config"
}

// Cluster is an API server to read from. It is safe for concurrent use.
type Cluster struct {
	name   string
	server string
	http   *http.Client
}

// Open reads a kubeconfig; it does not call the server. file "" is what
// $KUBECONFIG names (several files, where it lists them), else ~/.kube/config;
// context "" is the kubeconfig's current one.
func Open(file, context string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if file != "" {
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	}
	where := file
	if where == "" {
		where = strings.Join(rules.GetLoadingPrecedence(), ", ")
	}
	raw, err := rules.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no kubeconfig %s; check the path", where)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w; kubectl config view shows what kubectl makes of it", where, misfit.JSON(err))
	case len(raw.Clusters) == 0 && len(raw.Contexts) == 0:
		return nil, fmt.Errorf("kubeconfig %s: no cluster in it, or no such file; name one, or set KUBECONFIG", where)
	}
	name := context
	if name == "" {
		name = raw.CurrentContext
	}
	if _, ok := raw.Contexts[name]; !ok {
		known := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
		switch {
		case known == "":
			return nil, fmt.Errorf("kubeconfig %s: it has no contexts; add one (kubectl config set-context)", where)
		case name == "":
			return nil, fmt.Errorf("kubeconfig %s: no current context; name one of: %s", where, known)
		}
		return nil, fmt.Errorf("kubeconfig %s: no such context: %q; it has: %s", where, name, known)
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: context %q: %w", where, name, err)
	}
	return open(config, name)
}

func open(config *rest.Config, name string) (*Cluster, error) {
	config.Timeout = timeout
	config.UserAgent = "cotenant"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", name, err)
	}
	// The host may be written without a scheme, or with a path in front of the API.
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("context %q: server %q: %w", name, config.Host, err)
	}
	return &Cluster{name: name, server: strings.TrimSuffix(base.String(), "/"), http: client}, nil
}

// Name says which cluster it is, for people: its context and address.
func (c *Cluster) Name() string { return fmt.Sprintf("context %s at %s", c.name, c.server) }
