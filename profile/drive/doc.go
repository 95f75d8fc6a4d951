// Package drive presses on servers for which Debian has no load generator
// that reports latencies.
//
//	err := drive.Memcached(ctx, "127.0.0.1:11211", drive.Load{Clients: 4, Keys: 10000, Bytes: 100, Sets: .1}, os.Stdout)
package drive
