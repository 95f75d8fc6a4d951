package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cotenant/cotenant/history/formats"
)

// Kind is a kind of objects to read.
type Kind struct {
	// Name is that of the list, such as PodList.
	Name string
	// Path is that of the list in the API.
	Path string
	// Optional kinds may be absent or forbidden: they are then left out.
	Optional bool
	// Fields is a field selector; "" is all objects.
	Fields string
}

// The kinds that are read here.
var (
	Nodes = Kind{Name: "NodeList", Path: "/api/v1/nodes"}
	Pods  = Kind{Name: "PodList", Path: "/api/v1/pods"}
	// PodEvents are optional: many a reader of pods may not read events.
	PodEvents = Kind{Name: "EventList", Path: "/api/v1/events", Optional: true, Fields: "involvedObject.kind=Pod"}
	// PodGroups are the scheduler's own.
	PodGroups = Kind{Name: "PodGroupList", Path: "/apis/scheduling.k8s.io/v1beta1/podgroups", Optional: true}
)

// Gangs are all objects that say how many pods of a gang go together.
func Gangs() []Kind {
	kinds := []Kind{PodGroups}
	for _, r := range formats.GangResources {
		kinds = append(kinds, Kind{Name: r.Kind + "List", Path: "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource, Optional: true})
	}
	return kinds
}

// In is the kind in one namespace; "" is all of them.
func (k Kind) In(namespace string) Kind {
	if namespace != "" {
		const core = len("/api/v1")
		k.Path = k.Path[:core] + "/namespaces/" + url.PathEscape(namespace) + k.Path[core:]
	}
	return k
}

// pageSize is how many objects are asked for at a time; as kubectl does.
const pageSize = 500

// maxPage bounds what a page may weigh, in bytes: an API server's own limit for
// an object is 1.5 MiB.
const maxPage = 1 << 30

// page is a part of a list.
type page struct {
	Metadata struct {
		Continue string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// List writes the objects of each kind as a JSON document of its own, a list as
// the API server has it.
func (c *Cluster) List(ctx context.Context, w io.Writer, kinds ...Kind) error {
	out := bufio.NewWriter(w)
	for _, k := range kinds {
		items, err := c.items(ctx, k)
		var status *StatusError
		if k.Optional && errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusForbidden) {
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, `{"kind":%q,"items":[`, k.Name)
		for i, item := range items {
			if i > 0 {
				out.WriteByte(',') //nolint:errcheck // Flush tells
			}
			out.Write(item) //nolint:errcheck // Flush tells
		}
		fmt.Fprint(out, "]}\n")
	}
	return out.Flush()
}

// items reads a whole list. Where the API server no longer has the state of
// the first page, the list begins anew: half of one state and half of another
// would count a pod twice or never.
func (c *Cluster) items(ctx context.Context, k Kind) ([]json.RawMessage, error) {
	const tries = 3
	for try := 1; ; try++ {
		items, err := c.pages(ctx, k)
		var status *StatusError
		if errors.As(err, &status) && status.Code == http.StatusGone && try < tries {
			continue
		}
		return items, err
	}
}

func (c *Cluster) pages(ctx context.Context, k Kind) (items []json.RawMessage, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if k.Fields != "" {
		query.Set("fieldSelector", k.Fields)
	}
	for {
		body, err := c.get(ctx, k.Path+"?"+query.Encode())
		if err != nil {
			return nil, err
		}
		var p page
		if err := json.Unmarshal(body, &p); err != nil {
			return nil, fmt.Errorf("%s: %s: the answer is no JSON: %w; is that address an API server?", c.Name(), k.Path, err)
		}
		items = append(items, p.Items...)
		if p.Metadata.Continue == "" {
			return items, nil
		}
		query.Set("continue", p.Metadata.Continue)
	}
}

// get reads a path. A server that is busy is asked again after the time that it
// names.
func (c *Cluster) get(ctx context.Context, path string) ([]byte, error) {
	const tries = 4
	for try := 1; ; try++ {
		body, after, err := c.try(ctx, path)
		if after == 0 || try == tries {
			return body, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(after):
		}
	}
}

// try returns after > 0 where the server asks to be asked again.
func (c *Cluster) try(ctx context.Context, path string) (body []byte, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", c.Name(), err)
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return nil, 0, c.unreached(ctx, err)
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err != nil {
		return nil, 0, c.unreached(ctx, err)
	}
	if res.StatusCode == http.StatusOK {
		return body, 0, nil
	}
	if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		after = time.Duration(min(max(seconds, 1), 10)) * time.Second
	}
	return nil, after, c.refused(path, res.StatusCode, body)
}
