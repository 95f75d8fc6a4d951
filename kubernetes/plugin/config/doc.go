// Package config is the plugin's part of kube-scheduler's configuration: the
// kind CotenantArgs of kubescheduler.config.k8s.io/v1, with its defaults and
// what is valid.
//
//	profiles:
//	- plugins: {multiPoint: {enabled: [{name: Cotenant}]}}
//	  pluginConfig:
//	  - name: Cotenant
//	    args: {mode: shadow, model: {path: /etc/cotenant/model.safetensors}}
//
// Importing it registers the kind, so that unknown fields and bad values are
// errors when the scheduler starts, as for the plugins in the tree.
package config
