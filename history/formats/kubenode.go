package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/misfit"
)

// Labels that name the class of a node or its devices, the first that is
// there wins.
var (
	nodeClassLabels = []string{"cotenant.dev/class", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}
	gpuClassLabels  = []string{"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product", "cloud.google.com/gke-accelerator"}
)

// maxDevices bounds the devices of a node.
const maxDevices = 1024

type nodeObject struct {
	Spec struct {
		Unschedulable bool            `json:"unschedulable"`
		Taints        []cluster.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		Allocatable map[string]rawQuantity `json:"allocatable"`
	} `json:"status"`
}

func readNode(m meta, object []byte) (cluster.Node, error) {
	var n nodeObject
	if err := json.Unmarshal(object, &n); err != nil {
		return cluster.Node{}, misfit.JSON(err)
	}
	if len(n.Status.Allocatable) == 0 {
		return cluster.Node{}, errors.New("status.allocatable: missing; what the node can hold is not known")
	}
	capacity, err := resources("status.allocatable", n.Status.Allocatable)
	if err != nil {
		return cluster.Node{}, err
	}
	for i, t := range n.Spec.Taints {
		if err := checkEffect(fmt.Sprintf("spec.taints[%d].effect", i), t.Effect); err != nil {
			return cluster.Node{}, err
		}
	}
	node := cluster.Node{
		Name: m.Metadata.Name, Class: firstLabel(m.Metadata.Labels, nodeClassLabels), Capacity: capacity,
		Labels: m.Metadata.Labels, Taints: n.Spec.Taints, Unschedulable: n.Spec.Unschedulable,
	}
	// "pods" bounds how many run at a time: slots, not something they request.
	if _, bounded := n.Status.Allocatable["pods"]; bounded {
		const most = 1 << 20
		if capacity["pods"] > most {
			return cluster.Node{}, badField("status.allocatable[pods]", fmt.Sprint(capacity["pods"]), "is more than %d", most)
		}
		node.Slots = int(capacity["pods"])
		if node.Slots == 0 {
			node.Unschedulable = true // 0 slots means no limit in our words
		}
		delete(capacity, "pods")
	}
	for _, name := range capacity.Names() {
		if !isDevice(name) {
			continue
		}
		if int64(len(node.Devices))+capacity[name] > maxDevices {
			return cluster.Node{}, badField("status.allocatable["+name+"]", fmt.Sprint(capacity[name]), "is more than %d devices", maxDevices)
		}
		class := firstLabel(m.Metadata.Labels, gpuClassLabels)
		_, short, _ := strings.Cut(name, "/")
		if class == "" || strings.Contains(short, "mig-") {
			class = strings.Trim(class+" "+short, " ") // a slice is a class of its own
		}
		for i := range capacity[name] {
			node.Devices = append(node.Devices, cluster.Device{Name: fmt.Sprintf("%s-%d", short, i), Class: class})
		}
	}
	return node, nil
}

// isDevice reports whether units of an extended resource are accelerators.
func isDevice(resource string) bool {
	switch resource {
	case "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
		"habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "huawei.com/Ascend910":
		return true
	}
	return strings.HasPrefix(resource, "nvidia.com/mig-")
}

func firstLabel(labels map[string]string, keys []string) string {
	for _, k := range keys {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}

func checkEffect(field, effect string) error {
	if !slices.Contains(cluster.Effects, effect) {
		return badField(field, effect, "is none of %s", strings.Join(cluster.Effects, ", "))
	}
	return nil
}
