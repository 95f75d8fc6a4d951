package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/cotenant/cotenant/live"
)

// kubectlsOwn is the value of --cluster that means the kubeconfig that kubectl
// uses: $KUBECONFIG, else ~/.kube/config.
const kubectlsOwn = "kubeconfig"

// kubectlFlags are those by which kubectl says which cluster it means.
func kubectlFlags(fl *pflag.FlagSet, kubeconfig, kubeContext *string) {
	fl.StringVar(kubeconfig, "kubeconfig", "", "as --cluster `FILE`, by the name that kubectl has for it")
	fl.StringVar(kubeContext, "context", "", "`context` of the kubeconfig (default: its current one)")
}

// kubectlCluster is what --cluster and --kubeconfig together name.
func kubectlCluster(file, kubeconfig string) (string, error) {
	switch {
	case kubeconfig == "":
		return file, nil
	case file != "" && file != kubectlsOwn && file != kubeconfig:
		return "", wrongUse("--cluster and --kubeconfig are both given; keep one")
	}
	return kubeconfig, nil
}

// cluster reads the objects of a cluster: those of a file, or where that is a
// kubeconfig, of its API server, of these kinds. name says where they are from.
func (in *inputs) cluster(file, kubeContext string, kinds ...live.Kind) (data []byte, name string, err error) {
	config := file
	if file == kubectlsOwn && !isFile(file) {
		config = ""
	} else {
		if data, err = in.read("cluster", file); err != nil {
			return nil, file, err
		}
		if !live.IsKubeconfig(data) {
			if kubeContext != "" {
				return nil, file, wrongUse("--context %s: --cluster %s is no kubeconfig", kubeContext, file)
			}
			return data, file, nil
		}
		if file == "-" {
			return nil, file, wrongUse("--cluster -: a kubeconfig names other files by their place; give its path")
		}
	}
	c, err := live.Open(config, kubeContext)
	if err != nil {
		return nil, file, fmt.Errorf("--cluster: %w", err)
	}
	ctx := in.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	var objects bytes.Buffer
	if err := c.List(ctx, &objects, kinds...); err != nil {
		return nil, c.Name(), fmt.Errorf("--cluster: %w", err)
	}
	// The manifest names what was read, and not the kubeconfig alone: the cluster
	// changes.
	in.note("cluster", c.Name(), objects.Bytes())
	return objects.Bytes(), c.Name(), nil
}
