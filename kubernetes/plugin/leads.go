package plugin

import (
	"k8s.io/component-base/metrics"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // the gauge that is read here
)

// leaderGauge is kube-scheduler's own: 1 for a lease that it holds, 0 for one
// that it stands by for, absent where nothing is elected.
const leaderGauge = "leader_election_master_status"

// leads reports whether this scheduler is the one that schedules. Plugins run in
// the replicas that stand by, too, with informers and a queue, and are not told
// which they are in. A pod that is tried would tell, but there may be none: a
// gang that runs in part need have no pod that waits.
//
// Until its caches are filled a replica says nothing of its lease, and counts as
// the leader. Evictions come later: after the wait timeout, from then on.
func leads(from metrics.Gatherer) bool {
	families, _ := from.Gather() // with an error, all that could be gathered
	for _, f := range families {
		if f.GetName() != leaderGauge {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetGauge().GetValue() == 1 {
				return true
			}
		}
		return false
	}
	return true
}
