package formats_test

import (
	"testing"
	"time"

	"github.com/cotenant/cotenant/history/formats"
)

func TestGangObjects(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		minimum    int
		timeout    time.Duration
	}{
		{"coscheduling, Koordinator", `{"minMember":4,"scheduleTimeoutSeconds":10}`, 4, 10 * time.Second},
		{"Volcano", `{"minMember":3,"queue":"default"}`, 3, 0},
		{"the scheduler's own", `{"schedulingPolicy":{"gang":{"minCount":5}}}`, 5, 0},
		{"the scheduler's own, in part", `{"schedulingPolicy":{"basic":{}}}`, 0, 0},
		{"JobSet", `{"replicatedJobs":[{"replicas":2,"template":{"spec":{"parallelism":4,"completions":4}}},{"template":{"spec":{}}}]}`, 9, 0},
		{"JobSet with fewer completions", `{"replicatedJobs":[{"template":{"spec":{"parallelism":4,"completions":3}}}]}`, 3, 0},
		{"JobSet in order", `{"startupPolicy":{"startupPolicyOrder":"InOrder"},"replicatedJobs":[{"template":{"spec":{"parallelism":2}}},{"replicas":8,"template":{"spec":{}}}]}`, 2, 0},
		{"JobSet of jobs that depend", `{"replicatedJobs":[{"dependsOn":[{"name":"b"}],"template":{"spec":{"parallelism":7}}},{"name":"b","replicas":2,"template":{"spec":{}}}]}`, 2, 0},
		{"Kubeflow", `{"pytorchReplicaSpecs":{"Master":{"template":{}},"Worker":{"replicas":3}}}`, 4, 0},
		{"Kubeflow with a policy", `{"runPolicy":{"schedulingPolicy":{"minAvailable":2,"scheduleTimeoutSeconds":60}},"tfReplicaSpecs":{"PS":{"replicas":1},"Worker":{"replicas":3}}}`, 2, time.Minute},
		{"no number", `{"minMember":-1,"scheduleTimeoutSeconds":-5}`, 0, 0},
		{"huge", `{"scheduleTimeoutSeconds":9223372036854775807,"replicatedJobs":[{"replicas":9000000000000000000,"template":{"spec":{"parallelism":1}}}]}`, 1 << 20, 1 << 32 * time.Second},
	} {
		got, err := formats.ReadGangObject([]byte(`{"metadata":{"namespace":"ns","name":"g"},"spec":` + c.spec + `}`))
		if err != nil || got != (formats.GangObject{Namespace: "ns", Name: "g", Minimum: c.minimum, Timeout: c.timeout}) {
			t.Errorf("%s: %+v, %v; want %d, %v", c.name, got, err, c.minimum, c.timeout)
		}
	}
	for _, text := range []string{`[]`, `{"spec":{"minMember":"four"}}`, `{"spec":{"xgbReplicaSpecs":{"Worker":{"replicas":"x"}}}}`} {
		if _, err := formats.ReadGangObject([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
