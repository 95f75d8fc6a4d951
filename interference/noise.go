package interference

import (
	"math"
	"slices"
)

// Errors are learned on the logarithm of the ratio, so that they are relative:
// 3 % of .5 counts as much as 3 % of 2. logFloor is where it stops: a workload
// below 2 % of its rate alone stands still.
const logFloor = 0.02

func logRatio(v float64) float64 { return math.Log(max(v, logFloor)) }

// z90 is the half-width, in standard deviations, of the central 90 % of a
// normal distribution. Residuals have heavier tails than that, so Std is
// scaled to hold 90 % of them within z90 Std rather than to their variance.
const z90 = 1.6448536269514722

// noise says how wide the errors of a model are: in the logarithm,
//
//	sigma^2 = (alpha[group] exp(slope p))^2 + spread^2
//
// where p is the predicted logarithm, spread the disagreement of the
// ensemble's members, and a group is one workload on one class. The first
// term is what no amount of agreement takes away.
type noise struct {
	alpha []float32
	slope float32
}

// residual is one prediction of a cell that the predictor had not seen.
type residual struct {
	group  int
	p      float64 // predicted logarithm
	err    float64 // predicted - measured
	spread float64 // standard deviation over the members
}

// The prior: before any residual is seen, 10 % as if from two cells; a group
// borrows from all others as if it were twenty cells poorer.
const (
	priorAlpha, priorCells = 0.1, 2.0
	groupCells             = 20.0
)

// Where hardly anything but single tasks is known, what was left out resembles
// what was learned, and all that is asked later is unlike either: intervals held
// a twentieth to two thirds of it. So alpha is at least thinAlpha where nothing
// shared was measured: around 1, as alone, that reaches down to a fifth. The
// floor falls, cubed as residuals soon tell more than it does, to nothing with
// enoughShared co-locations: from there on, they tell by themselves.
const (
	thinAlpha    = 0.5
	enoughShared = 50
)

// floorOf alpha, with a number of shared co-locations known.
func floorOf(shared int) float64 {
	left := 1 - float64(min(shared, enoughShared))/enoughShared
	return thinAlpha * left * left * left
}

// fitNoise learns from residuals, those of shared co-locations of several tasks.
func fitNoise(rs []residual, groups, shared int) noise {
	n := noise{alpha: make([]float32, groups), slope: float32(noiseSlope(rs, groups))}
	all := n.alphaOf(rs)
	k := float64(len(rs))
	all = (k*all + priorCells*priorAlpha) / (k + priorCells)
	by := make([][]residual, groups)
	for _, r := range rs {
		by[r.group] = append(by[r.group], r)
	}
	for g, rs := range by {
		k := float64(len(rs))
		n.alpha[g] = float32(max(floorOf(shared), (k*n.alphaOf(rs)+groupCells*all)/(k+groupCells)))
	}
	return n
}

// noiseSlope regresses log |err| on p within groups: where a workload runs
// slow, the same absolute noise is a larger share.
func noiseSlope(rs []residual, groups int) float64 {
	if len(rs) < 50 {
		return 0
	}
	const tiny = 1e-4
	meanP, meanE, count := make([]float64, groups), make([]float64, groups), make([]float64, groups)
	for _, r := range rs {
		meanP[r.group] += r.p
		meanE[r.group] += math.Log(math.Abs(r.err) + tiny)
		count[r.group]++
	}
	var cov, variance float64
	for _, r := range rs {
		dp := r.p - meanP[r.group]/count[r.group]
		cov += dp * (math.Log(math.Abs(r.err)+tiny) - meanE[r.group]/count[r.group])
		variance += dp * dp
	}
	return min(1, max(-1, cov/(variance+1)))
}

// alphaOf finds the alpha with which z90 sigma holds 90 % of the residuals;
// 0 where the members' spread alone holds more.
func (n noise) alphaOf(rs []residual) float64 {
	if len(rs) == 0 {
		return 0
	}
	need := make([]float64, len(rs)) // the alpha from which each residual is held
	for i, r := range rs {
		if rest := r.err*r.err/(z90*z90) - r.spread*r.spread; rest > 0 {
			need[i] = math.Sqrt(rest) / math.Exp(float64(n.slope)*r.p)
		}
	}
	slices.Sort(need)
	at := 0.9 * float64(len(need)-1)
	i := int(at)
	if i+1 >= len(need) {
		return need[i]
	}
	return need[i] + (at-float64(i))*(need[i+1]-need[i])
}

// estimate turns a predicted logarithm and its members' spread into a value
// with its standard deviation.
func (n noise) estimate(group int, p, spread float64) Estimate {
	v := math.Exp(p)
	a := float64(n.alpha[group]) * math.Exp(float64(n.slope)*p)
	return Estimate{Value: v, Std: v * math.Hypot(a, spread), Known: true}
}
