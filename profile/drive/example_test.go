package drive_test

import (
	"context"
	"fmt"
	"io"

	"github.com/cotenant/cotenant/profile/drive"
)

// Nothing listens there: the driver says so instead of waiting.
func Example() {
	err := drive.Memcached(context.Background(), "127.0.0.1:1", drive.Load{Clients: 1, Keys: 10, Bytes: 100}, io.Discard)
	fmt.Println(err)
	// Output: memcached: dial tcp 127.0.0.1:1: connect: connection refused; is it started?
}
