package formats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/cotenant/cotenant/cluster"
	"github.com/cotenant/cotenant/internal/misfit"
)

// Cluster is a cluster as a file describes it. As JSON it is a cluster.Spec
// with one field more.
type Cluster struct {
	cluster.Spec
	// Pending are the groups that wait for a place, by arrival.
	Pending []cluster.Group `json:"pending,omitempty"`
}

// maxYAML bounds a YAML document, which takes many times its size in memory
// while it is read. JSON is read piece by piece and has no such bound.
const maxYAML = 32 << 20

// ReadKubernetes reads what kubectl get nodes,pods -A -o json (or yaml)
// prints: a List, a NodeList or PodList, single objects, or many documents
// after each other. Nodes become nodes with what they can allocate; pods
// become running tasks where they are bound to a node, and tasks of pending
// groups where not. Succeeded and Failed pods use nothing and are left out.
// Other kinds of objects are ignored.
//
// A document that is cut off is an error even when not strict: half a
// cluster would be wrong, not short. Items count from 0.
func ReadKubernetes(r io.Reader, o Options) (Cluster, Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return Cluster{}, Report{}, err
	}
	k := &kubernetes{reporter: newReporter(o, "item"), kinds: map[string]int{}, objects: map[string]uint64{}}
	if err := k.read(in); err != nil {
		return Cluster{}, k.Report, err
	}
	c, err := k.cluster()
	if err != nil {
		return Cluster{}, k.Report, err
	}
	report, err := k.done(len(c.Nodes)+len(k.pods), "nodes and pods")
	return c, report, err
}

// kubernetes collects the objects of a snapshot.
type kubernetes struct {
	*reporter
	items   int               // read so far
	kinds   map[string]int    // of the objects that were ignored
	objects map[string]uint64 // "kind namespace/name" to a hash of the object's text
	nodes   []cluster.Node
	pods    []pod
	ended   int // pods that have Succeeded or Failed
	// each, where not nil, gets the objects instead.
	each func(kind string, object []byte) error
}

// ReadObjects reads what ReadKubernetes reads, and hands each object to each
// as it is, with its kind. An error of each is that object's: it is left out, or
// with Options.Strict ends the reading.
func ReadObjects(r io.Reader, o Options, each func(kind string, object []byte) error) (Report, error) {
	o = o.withDefaults()
	in, err := unpack(r, o)
	if err != nil {
		return Report{}, err
	}
	k := &kubernetes{reporter: newReporter(o, "item"), each: each}
	if err := k.read(in); err != nil {
		return k.Report, err
	}
	return k.done(k.items, "objects")
}

func (k *kubernetes) read(in *bufio.Reader) error {
	c, err := firstByte(in)
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	case c == '{':
		return k.readJSON(in)
	}
	return k.readYAML(in)
}

// readJSON reads JSON documents up to the end.
func (k *kubernetes) readJSON(in io.Reader) error {
	dec := json.NewDecoder(in)
	for {
		switch err := k.document(dec); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// document reads one JSON document: a list, item by item, or an object.
func (k *kubernetes) document(dec *json.Decoder) error {
	token, err := dec.Token()
	switch {
	case err == io.EOF:
		return io.EOF
	case err != nil:
		return k.syntax(dec, err)
	case token != json.Delim('{'):
		return k.fatal("byte %d: %v, where an object belongs", dec.InputOffset(), token)
	}
	fields := map[string]json.RawMessage{}
	list := false
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return k.syntax(dec, err)
		}
		name, _ := token.(string) // keys are strings, or Token fails
		if name == "items" {
			list = true
			if err := k.list(dec, fields["kind"]); err != nil {
				return err
			}
			continue
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return k.syntax(dec, err)
		}
		if _, twice := fields[name]; twice {
			return k.fatal("byte %d: field %s comes a second time", dec.InputOffset(), quoteShort(name))
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return k.syntax(dec, err)
	}
	if list {
		return nil
	}
	object, err := json.Marshal(fields)
	if err != nil {
		return k.fatal("%w", err)
	}
	return k.item(object, "")
}

// list reads the items of a list; listKind is its kind as JSON, if known.
func (k *kubernetes) list(dec *json.Decoder, listKind json.RawMessage) error {
	token, err := dec.Token()
	switch {
	case err != nil:
		return k.syntax(dec, err)
	case token == nil: // null
		return nil
	case token != json.Delim('['):
		return k.fatal("byte %d: items is %v, where a list belongs", dec.InputOffset(), token)
	}
	// What the API server itself lists ("NodeList") has items without a kind.
	kind := strings.TrimSuffix(strings.Trim(string(listKind), `"`), "List")
	for dec.More() {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return k.syntax(dec, err)
		}
		if err := k.item(item, kind); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return k.syntax(dec, err)
	}
	return nil
}

// syntax is a document that ends early or is not JSON.
func (k *kubernetes) syntax(dec *json.Decoder, err error) error {
	var bad *json.SyntaxError
	switch {
	case errors.Is(err, ErrTooLarge), !errors.As(err, &bad) && err != io.EOF && err != io.ErrUnexpectedEOF:
		return err // from the input, which names itself
	case bad != nil:
		return k.fatal("byte %d, after %d items: %w", dec.InputOffset(), k.items, err)
	}
	return k.fatal("byte %d, after %d items: %w", dec.InputOffset(), k.items, truncated(err))
}

// readYAML reads YAML documents up to the end.
func (k *kubernetes) readYAML(in *bufio.Reader) error {
	lines := lineReader{in: in, max: min(k.MaxRecord, maxYAML)}
	var doc []byte
	start := 1
	flush := func() error {
		text := doc
		doc = doc[:0]
		if len(bytes.TrimSpace(text)) == 0 {
			return nil
		}
		object, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return k.fatal("the document that begins at line %d: %w", start, err)
		}
		if string(object) == "null" {
			return nil // comments only
		}
		return k.readJSON(bytes.NewReader(object))
	}
	for {
		line, err := lines.next()
		switch {
		case err == io.EOF:
			return flush()
		case errors.Is(err, errLineTooLong):
			return k.fatal("line %d: %w", lines.number, err)
		case err != nil:
			return err
		}
		if end := string(line) == "..." || string(line) == "---" || bytes.HasPrefix(line, []byte("--- ")); end {
			if err := flush(); err != nil {
				return err
			}
			start = lines.number + 1
			if len(line) > 3 {
				doc = append(append(doc, line[4:]...), '\n')
			}
			continue
		}
		if len(doc)+len(line) > maxYAML {
			return k.fatal("%w: the document that begins at line %d has more than %d bytes; get it with -o json, which is read piece by piece",
				ErrTooLarge, start, maxYAML)
		}
		doc = append(append(doc, line...), '\n')
	}
}

// meta is what all objects have.
type meta struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		CreationTimestamp string            `json:"creationTimestamp"`
		OwnerReferences   []owner           `json:"ownerReferences"`
	} `json:"metadata"`
}

type owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// item takes in one object, or reports it as bad.
func (k *kubernetes) item(object []byte, kind string) error {
	n := k.items
	k.items++
	if int64(len(object)) > k.MaxRecord {
		return k.bad(n, fmt.Errorf("%w: an object of %d bytes", ErrTooLarge, len(object)))
	}
	var m meta
	if err := json.Unmarshal(object, &m); err != nil {
		return k.bad(n, misfit.JSON(err))
	}
	if m.Kind == "" {
		m.Kind = kind
	}
	if k.each != nil {
		if err := k.each(m.Kind, object); err != nil {
			return k.bad(n, fmt.Errorf("%s %s/%s: %w", m.Kind, m.Metadata.Namespace, m.Metadata.Name, err))
		}
		k.Read++
		return nil
	}
	if m.Kind != "Node" && m.Kind != "Pod" {
		if m.Kind == "" {
			return k.bad(n, errors.New("kind: missing; it is neither a Node nor a Pod"))
		}
		if len(k.kinds) < maxWarnings {
			k.kinds[m.Kind]++
		}
		return nil
	}
	if err := k.object(m, object); err != nil {
		if errors.Is(err, errListed) {
			return nil
		}
		name := m.Metadata.Name
		if m.Metadata.Namespace != "" {
			name = m.Metadata.Namespace + "/" + name
		}
		var f *fieldError
		if errors.As(err, &f) {
			f.field = m.Kind + " " + name + ": " + f.field
			return k.bad(n, f)
		}
		return k.bad(n, fmt.Errorf("%s %s: %w", m.Kind, name, err))
	}
	k.Read++
	return nil
}

// errListed marks an object that was there before, word by word.
var errListed = errors.New("listed before")

func (k *kubernetes) object(m meta, object []byte) error {
	if m.Metadata.Name == "" {
		return errors.New("metadata.name: missing")
	}
	id := m.Kind + " " + m.Metadata.Namespace + "/" + m.Metadata.Name
	hash := maphash.Bytes(k.hash.Seed(), object)
	if before, twice := k.objects[id]; twice {
		if before == hash {
			k.Duplicates++
			return errListed
		}
		return errors.New("listed twice, with different content")
	}
	var err error
	if m.Kind == "Node" {
		var node cluster.Node
		if node, err = readNode(m, object); err == nil {
			k.nodes = append(k.nodes, node)
		}
	} else {
		err = k.pod(m, object)
	}
	if err == nil {
		k.objects[id] = hash
	}
	return err
}

// cluster puts the collected objects together.
func (k *kubernetes) cluster() (Cluster, error) {
	if len(k.kinds) > 0 {
		var text []string
		for _, kind := range sortedKeys(k.kinds) {
			text = append(text, fmt.Sprintf("%s (%d)", quoteShort(kind), k.kinds[kind]))
		}
		k.warn("ignored objects of other kinds: %s", strings.Join(text, ", "))
	}
	if k.ended > 0 {
		k.warn("pods that Succeeded or Failed: %d; they use nothing and are left out", k.ended)
	}
	if k.Duplicates > 0 {
		k.warn("objects listed twice: %d; taken once", k.Duplicates)
	}
	c := Cluster{Spec: cluster.Spec{Nodes: k.nodes}}
	known := map[string]bool{}
	for _, n := range k.nodes {
		known[n.Name] = true
	}
	placed := make([]pod, 0, len(k.pods))
	for _, p := range k.pods {
		if p.node != "" && !known[p.node] {
			if err := k.bad(p.item, badField("Pod "+string(p.task.ID)+": spec.nodeName", p.node,
				"is no node in the file; get nodes and pods together")); err != nil {
				return Cluster{}, err
			}
			k.Read--
			continue
		}
		placed = append(placed, p)
	}
	k.pods = placed
	for _, p := range k.pods {
		if p.node != "" {
			c.Running = append(c.Running, cluster.Running{Task: p.task, Node: p.node, Group: p.group})
		}
	}
	c.Pending = pendingGroups(k.pods)
	c.Constraints = k.constraints()
	slices.SortFunc(c.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return c, nil
}
