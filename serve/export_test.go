package serve

// StateFile is where a job's state is.
func (c *Coordinator) StateFile(job string) string { return c.saver.path(job) }

// Settle waits until a job's predictors have learned from its last report.
func (c *Coordinator) Settle(job string) {
	if j, err := c.find(job, false); err == nil {
		j.learn()
	}
}
