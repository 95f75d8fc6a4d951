package cluster

// Role is what a task does in its group.
type Role string

// The roles of tasks.
const (
	Worker          Role = "worker"
	ParameterServer Role = "ps"
	Replica         Role = "replica"
)

// Span is the smallest extent that holds all tasks of a job: how far apart
// they sit.
type Span string

// The spans, from the narrowest.
const (
	SpanDevice Span = "device"
	SpanNode   Span = "node"
	SpanRack   Span = "rack"
	SpanApart  Span = "apart"
)
