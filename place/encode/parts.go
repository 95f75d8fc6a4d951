package encode

// The features of a part of the cluster as the place of a task: those of the
// node in it that its own sub-policy would take, then these.
const (
	PartLead     = ServiceFeatures + iota // score of that node less the highest of all parts
	PartOpen                              // share of its nodes that have room
	PartFill                              // share of its room in use
	PartPace                              // mean value of its tasks, against that of the cluster
	PartFeatures = iota + ServiceFeatures
)

// Part tells of a part of the cluster.
type Part struct {
	Nodes, Open int     // nodes, and those of them that have room
	Fill        float64 // share of the room in use
	Tasks       int     // on its nodes
	Value       float64 // of them
}

// EncodePart writes the features of a part into row, whose first
// ServiceFeatures are those of its node already. lead is by how much the
// score of that node is below the highest of all parts.
func (e *Services) EncodePart(row []float32, p Part, lead float32) {
	row[PartLead] = max(-2*most, lead)
	row[PartOpen] = float32(p.Open) / float32(max(1, p.Nodes))
	row[PartFill] = float32(p.Fill)
	row[PartPace] = 0
	if p.Tasks > 0 {
		row[PartPace] = float32(max(-most, min(most, p.Value/e.unit/float64(p.Tasks)))) - e.context[ServiceValue]
	}
}

// The features of a workload as that of the next task: those of the node that
// such a task would get, then these, then those of the decision that are
// ofWorkload.
const (
	TurnLead = ServiceFeatures + iota // share of the workload's tasks that are left, less the highest such share
	TurnLeft                          // that share
	TurnGap                           // score of the node less that of the next best, over 10
	turnOwn
	TurnFeatures = turnOwn + len(ofWorkload)
)

// ofWorkload are the features of a decision that are of the task's workload.
var ofWorkload = [...]int{
	ServiceShare, ServiceAlone, ServiceBestNow, ServiceMeanNow, ServiceWorthNow, ServiceMarginNow, ServiceClaimed, ServiceSpread,
}

// EncodeTurn writes the features of workload w into row, whose first
// ServiceFeatures are those of its node already. left is the share of its
// tasks that are still to be placed, highest the highest such share, gap by how
// much its node's score is above that of any node in another situation.
func (e *Services) EncodeTurn(row []float32, w int, left, highest, gap float64) {
	row[TurnLead], row[TurnLeft] = float32(left-highest), float32(left)
	row[TurnGap] = float32(min(gap/10, 2*most))
	context := e.Context(w)
	for i, f := range ofWorkload {
		row[turnOwn+i] = context[f]
	}
}

// Overview is the features of a decision but for those that are of a workload,
// which are 0. It is shared, until the next call.
func (e *Services) Overview() []float32 {
	for _, f := range ofWorkload {
		e.context[f] = 0
	}
	return e.context[:]
}
