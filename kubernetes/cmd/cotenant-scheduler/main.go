// Command cotenant-scheduler is kube-scheduler with the plugin Cotenant: all of
// its flags, and the plugin's arguments in the file of --config.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/cotenant/cotenant/kubernetes/plugin"
)

func main() {
	command := app.NewSchedulerCommand(app.WithPlugin(plugin.Name, plugin.New))
	command.Use = "cotenant-scheduler"
	os.Exit(cli.Run(command))
}
