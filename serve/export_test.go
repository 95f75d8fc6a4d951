package serve

// StateFile is where a job's state is.
func (c *Coordinator) StateFile(job string) string { return c.saver.path(job) }
