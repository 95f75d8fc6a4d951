// Package serve answers over the network: today the balance coordinator, which
// hands out the batch sizes of training jobs (docs/serve.md).
//
//	c, err := serve.NewCoordinator(serve.Options{State: "state"})
//	go c.Run(ctx)                            // saves, forgets idle jobs
//	http.Serve(listener, serve.Handler(c, token))
//
// One Coordinator serves many jobs at once. Each has a lock of its own, so that
// none waits for another. What it decides is balance's; here live names,
// generations over restarts, limits on what is asked, and files.
//
// The agreement that all of a job's workers use one vector in one iteration
// rests on three rules: shares that were answered are never answered otherwise
// for the same generation and iteration; new shares hold from two iterations
// after the last report at the earliest; and whoever asks with another
// generation, or holds shares that the coordinator has forgotten, is told so
// and opens the job again with what it holds.
package serve
