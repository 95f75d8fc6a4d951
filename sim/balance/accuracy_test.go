package balance

import (
	"testing"

	core "github.com/cotenant/cotenant/balance"
)

func TestOutsideInputsHelpWhereTheyTellAhead(t *testing.T) {
	traces, err := DrawTraces(Cotenants, 6, 900, 4)
	if err != nil {
		t.Fatal(err)
	}
	rmse, err := Accuracy(traces, 200, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("relative RMSE: %v", rmse)
	for _, p := range []string{core.Last, core.EMA, core.ARIMA, core.RNN} {
		if rmse[core.NARX] >= rmse[p] {
			t.Errorf("narx errs by %.4f, %s by %.4f", rmse[core.NARX], p, rmse[p])
		}
	}
	if best := rmse[core.NARX]; rmse[core.Auto] > 1.1*best {
		t.Errorf("auto errs by %.4f, the best predictor by %.4f", rmse[core.Auto], best)
	}
}

func TestNoPredictorIsFarWorseThanTheLastValue(t *testing.T) {
	traces, err := DrawTraces(Static, 4, 500, 5)
	if err != nil {
		t.Fatal(err)
	}
	rmse, err := Accuracy(traces, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("relative RMSE: %v", rmse)
	for p, e := range rmse {
		if e > 1.15*rmse[core.Last] {
			t.Errorf("%s errs by %.4f, the last value by %.4f", p, e, rmse[core.Last])
		}
	}
}
