package storm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cotenant/cotenant/kubernetes/storm"
)

// member is a pod of the gang "g"; its UID is its name and a generation.
func member(name, uid, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), Labels: map[string]string{storm.GangLabel: "g"}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func ExampleLedger() {
	now := time.Unix(0, 0)
	l := storm.NewLedger(time.Minute)
	l.Now = func() time.Time { return now }
	l.Expect("g", 2)
	l.See(member("a", "a1", "node-1"))
	l.See(member("b", "b1", ""))
	now = now.Add(2 * time.Minute)
	for _, wrong := range l.Wrong() {
		fmt.Println(wrong)
	}
	// Output: gang g has been in part for 120 s: 1 of 2 pods are bound
}

func TestLedgerSeesAPodBoundTwice(t *testing.T) {
	l := storm.NewLedger(time.Minute)
	l.See(member("a", "a1", "node-1"))
	l.See(member("a", "a1", "node-2"))
	if w := l.Wrong(); len(w) != 1 || !strings.Contains(w[0], "bound to node-1 and then to node-2") {
		t.Errorf("noted %q", w)
	}
}

func TestLedgerOfAPodThatComesAgain(t *testing.T) {
	now := time.Unix(0, 0)
	l := storm.NewLedger(time.Minute)
	l.Now = func() time.Time { return now }
	l.Expect("g", 2)
	l.See(member("a", "a1", "node-1"))
	l.See(member("b", "b1", "node-1"))
	if !l.Whole("g") {
		t.Error("both are bound: not whole")
	}
	// b is deleted, and its successor of the same name is bound elsewhere in
	// time: nothing is wrong, whatever the order in which the news come.
	l.See(member("b", "b2", ""))
	l.Gone(member("b", "b1", "node-1"))
	if l.Whole("g") {
		t.Error("b's successor is not bound: whole")
	}
	now = now.Add(50 * time.Second)
	l.See(member("b", "b2", "node-2"))
	now = now.Add(50 * time.Second)
	if w := l.Wrong(); len(w) != 0 || !l.Whole("g") || l.Binds() != 3 {
		t.Errorf("noted %q, whole %v, binds %d", w, l.Whole("g"), l.Binds())
	}
}

func TestLedgerExcusesOutages(t *testing.T) {
	now := time.Unix(0, 0)
	l := storm.NewLedger(time.Minute)
	l.Now = func() time.Time { return now }
	l.Expect("g", 2)
	l.See(member("a", "a1", "node-1"))
	now = now.Add(90 * time.Second)
	l.Excuse(40 * time.Second)
	if w := l.Wrong(); len(w) != 0 {
		t.Errorf("noted %q", w)
	}
	l.Forget("g")
	now = now.Add(time.Hour)
	if w := l.Wrong(); len(w) != 0 {
		t.Errorf("of a gang that was ended: %q", w)
	}
}
