package conformance

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type option func(*corev1.Pod)

// pod is one of a workload that the model of our scheduler knows, so that what
// is tried is its plans and not only what it falls back to.
func pod(name string, options ...option) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"cotenant.dev/workload": "redis", "app": "redis"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "redis"}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func requests(name corev1.ResourceName, quantity string) option {
	return func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		if r.Requests == nil {
			r.Requests, r.Limits = corev1.ResourceList{}, corev1.ResourceList{}
		}
		r.Requests[name] = resource.MustParse(quantity)
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			r.Limits[name] = resource.MustParse(quantity)
		}
	}
}

func label(key, value string) option {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func selects(key, value string) option {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

func tolerates(key string, effect corev1.TaintEffect) option {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
}

func priority(class string) option {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

func port(n int32) option {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: n, HostPort: n}}
	}
}

func gated(name string) option {
	return func(p *corev1.Pod) {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
	}
}

func nodeTerm(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func needsNode(key string, op corev1.NodeSelectorOperator, values ...string) option {
	return func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{nodeTerm(key, op, values...)},
		}}
	}
}

func prefersNode(weight int32, key, value string) option {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: nodeTerm(key, corev1.NodeSelectorOpIn, value)})
	}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func term(app, topology string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: topology}}
}

func near(app, topology string) option {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app, topology)}
	}
}

func awayFrom(app, topology string) option {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(app, topology)}
	}
}

// rather makes soft what near, awayFrom and spreads ask for.
func rather(hard option) option {
	return func(p *corev1.Pod) {
		hard(p)
		soft := func(terms []corev1.PodAffinityTerm) (out []corev1.WeightedPodAffinityTerm) {
			for _, t := range terms {
				out = append(out, corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: t})
			}
			return out
		}
		if a := affinity(p).PodAffinity; a != nil {
			affinity(p).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft(a.RequiredDuringSchedulingIgnoredDuringExecution)}
		}
		if a := affinity(p).PodAntiAffinity; a != nil {
			affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft(a.RequiredDuringSchedulingIgnoredDuringExecution)}
		}
		for i := range p.Spec.TopologySpreadConstraints {
			p.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable = corev1.ScheduleAnyway
		}
	}
}

func spreads(topology string, skew int32) option {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: topology, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": p.Labels["app"]}},
		})
	}
}

func mounts(claim string) option {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

func device(claim string) option {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: &claim}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
	}
}

func zones(of int) func(int, *corev1.Node) {
	return func(i int, n *corev1.Node) {
		n.Labels[corev1.LabelTopologyZone] = fmt.Sprint("zone-", i%of)
	}
}
