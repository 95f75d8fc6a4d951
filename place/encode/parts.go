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
