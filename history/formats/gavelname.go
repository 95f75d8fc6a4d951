package formats

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cotenant/cotenant/history"
)

// maxWorkers bounds the workers of one job.
const maxWorkers = 100_000

// gavelJob is what Gavel calls a job type: a training configuration and how
// many workers run it.
type gavelJob struct {
	workload string // "resnet-50/32"
	batch    int    // 0 where the configuration has none
	workers  int
}

// parseGavelKey reads a job type in either form: the Python tuple
// "('ResNet-50 (batch size 32)', 2)", or the older plain text
// "ResNet-50 (batch size 32)", of one worker unless "(scale factor 2)" ends it.
func parseGavelKey(text string) (gavelJob, error) {
	model, workers := text, "1"
	if strings.HasPrefix(text, "(") {
		v, err := parsePython(text)
		if err != nil {
			return gavelJob{}, err
		}
		pair, _ := v.(pyTuple)
		if len(pair) != 2 {
			return gavelJob{}, fmt.Errorf("is no pair like ('ResNet-50 (batch size 32)', 1)")
		}
		name, isText := pair[0].(string)
		n, isNumber := pair[1].(pyNumber)
		if !isText || !isNumber {
			return gavelJob{}, fmt.Errorf("is no pair like ('ResNet-50 (batch size 32)', 1)")
		}
		model, workers = name, string(n)
	} else if head, n, ok := cutSuffixed(text, "scale factor"); ok {
		model, workers = head, n
	}
	j, err := parseGavelModel(model)
	if err != nil {
		return j, err
	}
	if j.workers, err = parseWorkers(workers); err != nil {
		return j, fmt.Errorf("has workers %s, which %w", quoteShort(workers), err)
	}
	return j, nil
}

// parseGavelModel reads the name of a training configuration: "ResNet-50
// (batch size 32)" is workload "resnet-50/32", "A3C" is "a3c".
func parseGavelModel(text string) (gavelJob, error) {
	name, batch, has := cutSuffixed(text, "batch size")
	j := gavelJob{workload: strings.ToLower(strings.TrimSpace(name)), workers: 1}
	if has {
		n, missing, err := parseCount(batch, 1<<31-1)
		switch {
		case err != nil:
			return j, fmt.Errorf("has batch size %s, which %w", quoteShort(batch), err)
		case missing || n == 0:
			return j, fmt.Errorf("has no batch size: %s", quoteShort(batch))
		}
		j.batch = n
		j.workload += fmt.Sprintf("/%d", n)
	}
	if family(j.workload) == "" {
		return j, errors.New("names no model")
	}
	return j, checkWorkload(j.workload)
}

// cutSuffixed parts "HEAD (WORDS N)" into HEAD and N.
func cutSuffixed(text, words string) (head, n string, ok bool) {
	inner, closed := strings.CutSuffix(text, ")")
	at := strings.LastIndex(inner, "("+words+" ")
	if !closed || at < 0 {
		return text, "", false
	}
	return strings.TrimSpace(inner[:at]), inner[at+len(words)+2:], true
}

func parseWorkers(text string) (int, error) {
	n, missing, err := parseCount(text, maxWorkers)
	if err == nil && (missing || n == 0) {
		err = fmt.Errorf("is no number of workers")
	}
	return n, err
}

// checkWorkload refuses what can't be the name of a workload in a sample.
func checkWorkload(name string) error {
	probe := history.Sample{Colocation: map[string]int{name: 1}, Workload: name, Metric: history.Rate}
	return probe.Validate()
}

// family is a workload's name without its batch size.
func family(workload string) string {
	name, _, _ := strings.Cut(workload, "/")
	return name
}

// excludes says whether Options.Exclude names the workload's family.
func (o *Options) excludes(workload string) bool {
	return slices.ContainsFunc(o.Exclude, func(e string) bool { return strings.EqualFold(e, family(workload)) })
}
