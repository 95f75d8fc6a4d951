package jobs

import (
	"slices"
	"time"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/history"
	"github.com/cotenant/cotenant/place"
)

// Board is a trial placement of gangs that knows its worth. Reset gives it a
// request; Put and Move change it, Undo takes back to a Mark; Decision says
// what was changed. A Board that is reset to a snapshot much like the last one
// costs little: it reads what is new.
//
// Tasks, gangs and sites are numbered; the numbers hold until the next Reset.
// It is not safe for concurrent use.
type Board struct {
	speeds *Speeds
	epoch  int // of speeds
	req    place.Request
	// Explain asks for full words in Decision.
	Explain bool

	// What the nodes are: kept while they are.
	nodes       []cluster.Node
	usable      []string // the classes of the cluster, sorted
	sites       []site
	host        int // index of the first site that is a node
	firstDevice []int32
	state       []nodeState // by node
	devices     []deviceState
	dims        []string
	numbers     []int // 0, 1, ...: the Devices of bindings
	alone       map[aloneKey][]float64
	scales      map[scaleKey]float64 // 0 where unknown
	kinds       map[string]int32
	kindCount   int32
	key         []byte
	requests    []cluster.Resources // by workload number
	holds       map[int32]bool      // by kind of gang

	// Who runs and who waits.
	tasks     []task
	freeTasks []int32
	gangs     []gang
	freeGangs []int32
	few       []int32 // memory for the tasks of gangs, one each to begin with
	byName    map[string]int32
	last      []cluster.Running // of the last view
	met       []met             // of each Running
	running   []int32           // task of each Running
	waiting   []waits           // of each Pending
	placed    []int32           // by gang: how many of its pending tasks have a site
	why       []Refusal
	words     []string // by Pending: why in full, where Explain asks for it
	tainted   bool     // some node has taints
	slotsFree int      // on devices
	rules     *rules   // nil where the cluster has no constraints
	index     *alikeSites
	gangIndex *alikeSites // of gangs of several tasks, once one is asked about
	manyAlike int         // manyAlike; 0 in tests, which look up all
	log       []step
	dirty     []int32 // gangs to value anew
	delta     float64 // change of the sum of progress since it was set to 0
	gained    float64 // the same since Reset
	stamp     int32
	settled   int        // how often gangs were valued: what is known holds as long
	own       []ownValue // by co-location

	// Scratch of candidates and of the queue.
	seen      []seen // by config
	found     []Candidate
	inquiries []Config
	refused   []refusal // by kind
	only      []int32   // where not nil, the sites that candidates are among
	onlyNode  int32     // where not negative, the node that they are on
}

// site is what the tasks of a co-location share: a device or a node.
type site struct {
	node, device int32 // device is the index in the node's; -1 for a node
	class        int32
	config       Config
	tenants      []int32 // tasks, in the order in which they came
}

type nodeState struct {
	closed bool
	slots  int32 // free; negative where there is no limit
	tasks  int32
	share  float64 // of its resources, slots and device slots taken, in the mean
	free   []int64 // by dimension
}

type deviceState struct{ used, slots int32 }

type task struct {
	id       cluster.TaskID
	workload int32
	gang     int32
	site     int32 // -1 where it is not placed
	home     int32 // the site where it ran at Reset; -1 for pending
	on       []int // indices of the devices used, of its node
	homeOn   []int // those at home
	wants    int32 // devices
	kind     int32 // of rules
	run      int32 // position in Running; -1 for pending
	need     []int64
	lacks    string // a resource it requests that no node has
	ps       bool
	movable  bool
	reason   place.Reason // of its last Put, where Explain asks for it
}

type gang struct {
	name     string
	tasks    []int32
	workers  int32
	wants    int32     // devices, all tasks together
	alone    []float64 // by class number, on one node and apart
	progress float64
	scale    float64 // speed alone at its size over that at its own
	net      int32   // workers more than at Reset
	sizes    *cluster.Sizes
	kind     int32
	stamp    int32
	waits    bool          // it is pending
	since    time.Duration // when it arrived or began to run
}

// waits is what is looked at of every pending gang each time; apart from the
// gangs, so that this reads little memory.
type waits struct {
	name        string
	first       *cluster.Task
	id          cluster.TaskID // of the first task
	arrival     time.Duration
	priority    int
	tasks       int32
	gang        int32
	kind, wants int32
	least, most int // workers, of a gang that scales
	whole       bool
}

// met is what tells a running task from another, where it runs.
type met struct {
	id                    cluster.TaskID
	node, workload, group string
	on                    []int
	started               time.Duration
	devices               int
	movable, ps           bool
	requests              cluster.Resources
	sizes                 *cluster.Sizes
}

type aloneKey struct{ workload, workers int32 }

// NewBoard is a board for a policy that believes s.
func NewBoard(s *Speeds) *Board {
	return &Board{speeds: s, onlyNode: -1, manyAlike: manyAlike, byName: map[string]int32{}, alone: map[aloneKey][]float64{}, scales: map[scaleKey]float64{}, kinds: map[string]int32{}, holds: map[int32]bool{}}
}

// Speeds is what the board believes.
func (b *Board) Speeds() *Speeds { return b.speeds }

// Request is what the board was last reset to.
func (b *Board) Request() place.Request { return b.req }

// Sites is the number of sites: the devices (at the scope of a device), then
// the nodes.
func (b *Board) Sites() int { return len(b.sites) }

// Site says where a site is: the index of its node, and of its device in the
// node, -1 where the site is the node.
func (b *Board) Site(s int) (node, device int) {
	return int(b.sites[s].node), int(b.sites[s].device)
}

// Config is the co-location on a site.
func (b *Board) Config(s int) Config { return b.sites[s].config }

// Class is the number of the site's class; see Classes.
func (b *Board) Class(s int) int { return int(b.sites[s].class) }

// ClassName is the name of the site's class.
func (b *Board) ClassName(s int) string { return b.speeds.classes[b.sites[s].class] }

// Classes lists the classes of devices (or nodes) in the cluster, sorted.
func (b *Board) Classes() []string { return b.usable }

// Tenants lists the tasks on a site. It is shared: do not change it.
func (b *Board) Tenants(s int) []int32 { return b.sites[s].tenants }

// Slots is how many more tasks a device takes, and how many it takes in all;
// for a site that is a node, the devices of the node together.
func (b *Board) Slots(s int) (free, all int) {
	st := &b.sites[s]
	lo, hi := b.firstDevice[st.node], b.firstDevice[st.node+1]
	if st.device >= 0 {
		lo, hi = lo+st.device, lo+st.device+1
	}
	for _, d := range b.devices[lo:hi] {
		free += int(d.slots - d.used)
		all += int(d.slots)
	}
	return free, all
}

// Dimensions lists the resources that nodes have, sorted.
func (b *Board) Dimensions() []string { return b.dims }

// Free is what is left on a node, in the order of Dimensions; nil where there
// are none. It is shared: do not change it.
func (b *Board) Free(node int) []int64 { return b.state[node].free }

// Pending is the number of pending gangs, Gang the number of the i-th: in the
// order of the request.
func (b *Board) Pending() int { return len(b.waiting) }

// Gang is the number of the i-th pending gang.
func (b *Board) Gang(i int) int { return int(b.waiting[i].gang) }

// GangOf is the gang of a task.
func (b *Board) GangOf(t int) int { return int(b.tasks[t].gang) }

// Tasks lists the tasks of a gang. It is shared: do not change it.
func (b *Board) Tasks(g int) []int32 { return b.gangs[g].tasks }

// Running lists the tasks that run, in the order of the snapshot. It is
// shared: do not change it.
func (b *Board) Running() []int32 { return b.running }

// At is the site of a task, -1 where it is not placed.
func (b *Board) At(t int) int { return int(b.tasks[t].site) }

// Workload is the workload number of a task, as in Speeds.
func (b *Board) Workload(t int) int { return int(b.tasks[t].workload) }

// Serves reports whether the task is a parameter server.
func (b *Board) Serves(t int) bool { return b.tasks[t].ps }

// Need is what the task requests, in the order of Dimensions; nil for
// nothing. It is shared: do not change it.
func (b *Board) Need(t int) []int64 { return b.tasks[t].need }

// Workers is the number of workers of a gang.
func (b *Board) Workers(g int) int { return int(b.gangs[g].workers) }

// Kind numbers what gangs are made of: gangs of one kind are interchangeable,
// but for their age. Running gangs have none: -1.
func (b *Board) Kind(g int) int { return int(b.gangs[g].kind) }

// Alone is the gang's progress with nothing beside it on the class of a site,
// on one node or apart; 0 where it cannot run there. Like all progress of a
// gang that was scaled it is relative to the gang's own size.
func (b *Board) Alone(g, class int, apart bool) float64 {
	at := 2 * class
	if apart {
		at++
	}
	return b.gangs[g].alone[at] * b.gangs[g].scale
}

// Age is how long a gang has run, or has waited where it is pending.
func (b *Board) Age(g int) time.Duration { return b.req.Now - b.gangs[g].since }

// Waits reports whether the gang is pending.
func (b *Board) Waits(g int) bool { return b.gangs[g].waits }

// Name is the name of a gang.
func (b *Board) Name(g int) string { return b.gangs[g].name }

// Meets reports whether tasks on the site can interfere: at the scope of a
// device, those that need none do not.
func (b *Board) Meets(s int) bool { return b.meets(int32(s)) }

// Movable reports whether a task runs and may be moved.
func (b *Board) Movable(t int) bool { return b.tasks[t].movable }

// Home is the site where a running task was when the board was reset, -1 for
// a task that did not run.
func (b *Board) Home(t int) int { return int(b.tasks[t].home) }

// Room is the free device slots of a node.
func (b *Board) Room(node int) int { return int(b.room(int32(node))) }

// Wants is how many devices a task takes.
func (b *Board) Wants(t int) int { return int(b.tasks[t].wants) }

// atDevices reports whether tasks that want a device meet on devices.
func (b *Board) atDevices() bool { return b.speeds.options.Scope == history.ScopeDevice }

// Range is the sites that a task can be put on, as a half-open interval of
// site numbers.
func (b *Board) Range(t int) (lo, hi int) {
	if b.tasks[t].wants > 0 && b.atDevices() {
		return 0, b.host
	}
	return b.host, len(b.sites)
}

// layout reads the nodes.
func (b *Board) layout(nodes []cluster.Node) {
	b.nodes = nodes
	b.sites, b.devices, b.state = b.sites[:0], b.devices[:0], b.state[:0]
	b.firstDevice = b.firstDevice[:0]
	b.usable, b.dims, b.tainted, b.slotsFree = nil, nil, false, 0
	clear(b.alone)
	clear(b.scales)
	clear(b.holds)
	b.requests = b.requests[:0]
	names := map[string]bool{}
	most := 0
	for i := range nodes {
		n := &nodes[i]
		b.firstDevice = append(b.firstDevice, int32(len(b.devices)))
		most = max(most, len(n.Devices))
		b.tainted = b.tainted || len(n.Taints) > 0
		for d := range n.Devices {
			b.devices = append(b.devices, deviceState{slots: int32(max(1, n.Devices[d].Slots))})
			b.slotsFree += max(1, n.Devices[d].Slots)
			if b.atDevices() {
				b.addSite(i, d, deviceClass(n, d))
				names[deviceClass(n, d)] = true
			}
		}
		for r, amount := range n.Capacity {
			if amount != 0 && !slices.Contains(b.dims, r) {
				b.dims = append(b.dims, r)
			}
		}
	}
	b.firstDevice = append(b.firstDevice, int32(len(b.devices)))
	b.host = len(b.sites)
	for i := range nodes {
		b.addSite(i, -1, nodes[i].Class)
		if !b.atDevices() || len(b.devices) == 0 {
			names[nodes[i].Class] = true
		}
	}
	for name := range names {
		b.usable = append(b.usable, name)
	}
	slices.Sort(b.usable)
	slices.Sort(b.dims)
	room := make([]int32, 0, b.slotsFree)
	for i := range b.sites[:b.host] {
		slots := int(b.devices[i].slots)
		b.sites[i].tenants = room[:0:slots]
		room = room[slots:slots]
	}
	for len(b.numbers) < most {
		b.numbers = append(b.numbers, len(b.numbers))
	}
}

func deviceClass(n *cluster.Node, d int) string {
	if c := n.Devices[d].Class; c != "" {
		return c
	}
	return n.Class
}

func (b *Board) addSite(node, device int, class string) {
	empty := b.speeds.Empty(class)
	s := site{node: int32(node), device: int32(device), class: b.speeds.class[class], config: empty}
	b.sites = append(b.sites, s)
}
