package main

// maxRate is the most that --rate takes. The problems diverge long before that.
const maxRate = 1000

// checkTraining refuses numbers that no training has.
func (f *simulateBalanceFlags) checkTraining() error {
	switch {
	case !(f.rate > 0 && f.rate <= maxRate):
		return wrongUse("--rate %g: give a learning rate above 0, at most %d, such as 0.5", f.rate, maxRate)
	case !(f.step >= 1e-3 && f.step <= 1e6):
		return wrongUse("--step %g: give seconds from 0.001 to 1e6", f.step)
	case !(f.upload >= 0 && f.upload <= 1e6):
		return wrongUse("--communicate %g: give seconds from 0 to 1e6", f.upload)
	case !(f.overhead >= 0 && f.overhead <= 1e6):
		return wrongUse("--overhead %g: give seconds from 0 to 1e6", f.overhead)
	case f.slack < 1:
		return wrongUse("--staleness %d: give at least 1 iteration; the policy that waits in each is bsp", f.slack)
	}
	return nil
}
