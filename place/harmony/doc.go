// Package harmony places training jobs with a network that was trained by
// reinforcement learning: the actor of Harmony (Bao et al., Deep Learning-based
// Job Placement in Distributed Machine Learning Clusters, INFOCOM 2019), on
// candidates instead of a fixed cluster.
//
// For each gang of the queue, in arrival order, the policy lists the ways to
// place it (for a single task the unlike sites; for a gang whole plans, by
// several rules) and to wait, describes each by place/encode, and takes the one
// that the network scores highest. Weights are shared by all candidates, so one
// network serves any cluster, any mix of classes and any workloads that the
// interference model knows.
//
//	f, err := harmony.Shipped(history.ScopeDevice) // or harmony.Load(r)
//	p, err := f.Policy(jobs.Settings{Speeds: speeds})
//	d, err := p.Place(place.Request{View: s, Pending: queue, Now: now})
//
// It only infers: training is train/harmony's, which hands in a Picker of its
// own.
package harmony
