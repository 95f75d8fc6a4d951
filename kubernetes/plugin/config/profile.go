package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	defaults "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// PluginName is the plugin's in profiles.
const PluginName = "Cotenant"

// wire completes the profiles that enable the plugin at multiPoint, before
// kube-scheduler sets its own defaults: the plugin binds before the default
// binder, and generates placements in place of the plugin that it wraps, since
// only one may. What is given by hand stays.
func wire(obj any) {
	c, ok := obj.(*configv1.KubeSchedulerConfiguration)
	if !ok {
		return
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		for j := range p.PluginConfig {
			if a, ok := p.PluginConfig[j].Args.Object.(*CotenantArgs); ok {
				SetDefaults(a)
			}
		}
		if p.Plugins == nil || !has(p.Plugins.MultiPoint.Enabled, PluginName) || !acts(p.PluginConfig) {
			continue
		}
		multi, bind := &p.Plugins.MultiPoint, &p.Plugins.Bind
		if !has(multi.Enabled, names.TopologyPlacementGenerator) && !has(multi.Disabled, names.TopologyPlacementGenerator) {
			multi.Disabled = append(multi.Disabled, configv1.Plugin{Name: names.TopologyPlacementGenerator})
		}
		if !has(bind.Enabled, PluginName) && !has(bind.Disabled, PluginName) {
			bind.Enabled = slices.Insert(bind.Enabled, 0, configv1.Plugin{Name: PluginName})
		}
	}
}

func has(list []configv1.Plugin, name string) bool {
	return slices.ContainsFunc(list, func(p configv1.Plugin) bool { return p.Name == name })
}

// acts reports whether the arguments let the plugin do more than watch.
func acts(list []configv1.PluginConfig) bool {
	for i := range list {
		if a, ok := list[i].Args.Object.(*CotenantArgs); ok && list[i].Name == PluginName {
			most := a.Most()
			return most == Assist || most == Enforce
		}
	}
	return false
}

func setProfileDefaults(s *runtime.Scheme) {
	s.AddTypeDefaultingFunc(&configv1.KubeSchedulerConfiguration{}, func(obj any) {
		wire(obj)
		defaults.SetObjectDefaults_KubeSchedulerConfiguration(obj.(*configv1.KubeSchedulerConfiguration))
	})
}
