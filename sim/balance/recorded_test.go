package balance

import (
	"os"
	"testing"

	core "github.com/cotenant/cotenant/balance"
)

// recorded are speeds of real training processes beside stress-ng,
// redis-benchmark and a compiler (python/bench/traces.py).
func recorded(t *testing.T) []Trace {
	t.Helper()
	f, err := os.Open("testdata/speeds.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	traces, err := ReadTraces(f, "speeds.csv")
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

func TestPredictorsOnRecordedSpeeds(t *testing.T) {
	all := recorded(t)
	for name, traces := range map[string][]Trace{"one worker": all[:1], "two workers": all[1:]} {
		for _, seed := range []uint64{1, 2, 3} {
			rmse, err := Accuracy(traces, 30, seed)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, seed %d: relative RMSE: last %.4f, ema %.4f, arima %.4f, rnn %.4f, narx %.4f, auto %.4f",
				name, seed, rmse[core.Last], rmse[core.EMA], rmse[core.ARIMA], rmse[core.RNN], rmse[core.NARX], rmse[core.Auto])
			best := min(rmse[core.Last], rmse[core.EMA], rmse[core.ARIMA], rmse[core.RNN], rmse[core.NARX])
			if rmse[core.Auto] > 1.2*best {
				t.Errorf("%s, seed %d: auto errs by %.4f, the best predictor by %.4f", name, seed, rmse[core.Auto], best)
			}
		}
	}
}
