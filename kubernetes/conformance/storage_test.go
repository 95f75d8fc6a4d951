package conformance

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cotenant/cotenant/kubernetes/controlplane"
)

var one = resource.MustParse("1")

func cpu(quantity string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}}
}

// storageCases need the controller that binds volumes, or devices.
var storageCases = []struct {
	name string
	run  func(w *world)
}{
	{"a pod goes where its bound volume is", func(w *world) {
		w.nodes(3, small, nil)
		w.class("disks", storagev1.VolumeBindingImmediate)
		w.volume("disk", "disks", corev1.ReadWriteOnce, node2)
		w.claim("data", "disks", corev1.ReadWriteOnce)
		w.create(pod("a", mounts("data")))
		w.bound("a", node2)
	}},
	{"the first consumer decides which volume", func(w *world) {
		w.nodes(3, small, nil)
		w.class("local", storagev1.VolumeBindingWaitForFirstConsumer)
		w.volume("disk-0", "local", corev1.ReadWriteOnce, node0)
		w.volume("disk-1", "local", corev1.ReadWriteOnce, node1)
		w.claim("data", "local", corev1.ReadWriteOnce)
		w.create(pod("a", mounts("data"), needsNode(corev1.LabelHostname, corev1.NodeSelectorOpIn, node1, node2)))
		w.bound("a", node1)
	}},
	{"a claim that does not exist yet", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("a", mounts("data")))
		w.pending("a", unschedulable)
		w.class("disks", storagev1.VolumeBindingImmediate)
		w.volume("disk", "disks", corev1.ReadWriteOnce, node0)
		w.claim("data", "disks", corev1.ReadWriteOnce)
		w.bound("a", node0)
	}},
	{"a claim for one pod alone", func(w *world) {
		w.nodes(1, small, nil)
		w.class("disks", storagev1.VolumeBindingImmediate)
		w.volume("disk", "disks", corev1.ReadWriteOncePod, node0)
		w.claim("data", "disks", corev1.ReadWriteOncePod)
		w.create(pod("a", mounts("data")))
		w.bound("a", node0)
		w.create(pod("b", mounts("data")))
		w.pending("b", unschedulable)
		w.delete("a")
		w.bound("b", node0)
	}},
	{"a device is claimed where there is one", func(w *world) {
		w.nodes(3, small, nil)
		w.devices(node1, 1)
		w.deviceClaim("gpu-a")
		w.deviceClaim("gpu-b")
		w.create(pod("a", device("gpu-a")))
		w.bound("a", node1)
		w.create(pod("b", device("gpu-b")), pod("none", device("gpu-c")))
		w.pending("b", unschedulable)
		w.unbound("none")
		w.devices(node2, 1)
		w.bound("b", node2)
	}},
}

func (w *world) class(name string, mode storagev1.VolumeBindingMode) {
	w.Helper()
	_, err := w.kube.StorageV1().StorageClasses().Create(w.ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

var gibibyte = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}

func (w *world) volume(name, class string, mode corev1.PersistentVolumeAccessMode, node string) {
	w.Helper()
	_, err := w.kube.CoreV1().PersistentVolumes().Create(w.ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: gibibyte, AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/" + name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) claim(name, class string, mode corev1.PersistentVolumeAccessMode) {
	w.Helper()
	_, err := w.kube.CoreV1().PersistentVolumeClaims(namespace).Create(w.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: gibibyte},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

const driver = "gpu.example.com"

// devices says that a node has n devices of the class "gpu".
func (w *world) devices(node string, n int) {
	w.Helper()
	var all []resourcev1.Device
	for i := range n {
		all = append(all, resourcev1.Device{Name: "gpu-" + string(rune('0'+i))})
	}
	_, err := w.kube.ResourceV1().ResourceSlices().Create(w.ctx, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Devices: all,
			Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// deviceClaim claims one device of the class "gpu", which it makes where it is
// not there yet.
func (w *world) deviceClaim(name string) {
	w.Helper()
	classes := w.kube.ResourceV1().DeviceClasses()
	if _, err := classes.Get(w.ctx, "gpu", metav1.GetOptions{}); err != nil {
		_, err := classes.Create(w.ctx, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`},
			}}},
		}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
	}
	_, err := w.kube.ResourceV1().ResourceClaims(namespace).Create(w.ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// priorityCases are about who goes first, and who must give way.
var priorityCases = []struct {
	name string
	run  func(w *world)
}{
	{"the important pod takes a node from an unimportant one", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("low", priority("low"), requests(corev1.ResourceCPU, "2")))
		w.bound("low", node0)
		w.create(pod("high", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.gone("low")
		w.bound("high", node0)
	}},
	{"as few as needed give way, the least important first", func(w *world) {
		w.nodes(1, controlplane.NodeShape{CPU: "3"}, nil)
		w.create(
			pod("low", priority("low"), requests(corev1.ResourceCPU, "1")),
			pod("middle-a", priority("middle"), requests(corev1.ResourceCPU, "1")),
			pod("middle-b", priority("middle"), requests(corev1.ResourceCPU, "1")),
		)
		w.bound("low", node0)
		w.bound("middle-a", node0)
		w.bound("middle-b", node0)
		w.create(pod("high", priority("high"), requests(corev1.ResourceCPU, "1")))
		w.gone("low")
		w.bound("high", node0)
		w.bound("middle-a", node0)
		w.bound("middle-b", node0)
	}},
	{"the node where less is lost", func(w *world) {
		w.nodes(2, small, nil)
		w.create(
			pod("middle", priority("middle"), requests(corev1.ResourceCPU, "2"), selects(corev1.LabelHostname, node0)),
			pod("low", priority("low"), requests(corev1.ResourceCPU, "2"), selects(corev1.LabelHostname, node1)),
		)
		w.bound("middle", node0)
		w.bound("low", node1)
		w.create(pod("high", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.gone("low")
		w.bound("high", node1)
		w.bound("middle", node0)
	}},
	{"an important gang takes nodes from unimportant pods", func(w *world) {
		w.nodes(2, small, nil)
		all := requests(corev1.ResourceCPU, "2")
		w.create(pod("low-a", priority("low"), all), pod("low-b", priority("low"), all))
		w.bound("low-a", node0, node1)
		w.bound("low-b", node0, node1)
		member := func(p *corev1.Pod) {
			p.Labels["kueue.x-k8s.io/pod-group-name"], p.Labels["kueue.x-k8s.io/pod-group-total-count"] = "g", "2"
		}
		w.create(pod("high-a", priority("high"), all, member), pod("high-b", priority("high"), all, member))
		w.gone("low-a")
		w.gone("low-b")
		w.bound("high-a", node0, node1)
		w.bound("high-b", node0, node1)
	}},
	{"equals do not give way", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("a", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.bound("a", node0)
		w.create(pod("b", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.pending("b", unschedulable)
		w.bound("a", node0)
	}},
	{"who never preempts waits", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("low", priority("low"), requests(corev1.ResourceCPU, "2")))
		w.bound("low", node0)
		w.create(pod("polite", priority("polite"), requests(corev1.ResourceCPU, "2")))
		w.pending("polite", unschedulable)
		w.bound("low", node0)
	}},
	{"nobody gives way where it would not help", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("low", priority("low"), requests(corev1.ResourceCPU, "1")))
		w.bound("low", node0)
		w.create(pod("huge", priority("high"), requests(corev1.ResourceCPU, "3")))
		w.pending("huge", unschedulable)
		w.bound("low", node0)
	}},
	{"room goes to the important pod first", func(w *world) {
		w.create(pod("a-low", priority("low"), requests(corev1.ResourceCPU, "2")), pod("b-high", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.pending("a-low", unschedulable)
		w.pending("b-high", unschedulable)
		w.nodes(1, small, nil)
		w.bound("b-high", node0)
		w.pending("a-low", unschedulable)
	}},
	{"a nominated node is kept for who waits for it", func(w *world) {
		w.nodes(1, small, nil)
		w.create(pod("low", priority("low"), requests(corev1.ResourceCPU, "2"), func(p *corev1.Pod) { p.Finalizers = []string{"example.com/slow"} }))
		w.bound("low", node0)
		w.create(pod("high", priority("high"), requests(corev1.ResourceCPU, "2")))
		w.until("high is nominated", func() (bool, error) {
			p, err := w.pod("high")
			return err == nil && p.Status.NominatedNodeName == node0, err
		})
		w.create(pod("late", priority("low"), requests(corev1.ResourceCPU, "1")))
		w.pending("late", unschedulable)
		w.patchPod("low", `[{"op":"remove","path":"/metadata/finalizers"}]`)
		w.gone("low")
		w.bound("high", node0)
	}},
}
