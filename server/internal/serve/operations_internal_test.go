package serve

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Ensure that the operations that run are bounded, and so are those that have ended.
func TestOperations_Most(t *testing.T) {
	t.Parallel()
	os := NewOperations(time.Now)
	os.Changed = func(string, int64, OperationState) {}
	var running []*Operation
	for range MaxRunningOperations {
		_, o, err := os.Start(context.Background(), "a", os.Next(), About{})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, o)
	}
	if _, _, err := os.Start(context.Background(), "a", os.Next(), About{}); ProblemOf(err).Status != 429 {
		t.Errorf("one too many: %v", err)
	}
	for _, o := range running {
		os.Finish(o, OperationState{Status: OperationCompleted})
	}
	for range maxKeptOperations {
		_, o, err := os.Start(context.Background(), "b", os.Next(), About{})
		if err != nil {
			t.Fatal(err)
		}
		os.Finish(o, OperationState{Status: OperationCompleted})
	}
	if len(os.byID) != maxKeptOperations || os.Find("a", running[0].Of.ID) == nil || os.running != 0 {
		t.Errorf("%d are kept, %d run", len(os.byID), os.running)
	}
	os.Forget("b")
	os.Forget("a")
	if len(os.byID) != 0 {
		t.Errorf("%d are left of a database that was deleted", len(os.byID))
	}
}

// Ensure that the log says where an operation has panicked, and its client does not.
func TestOperations_Panic(t *testing.T) {
	t.Parallel()
	_, err := RunOperation(t.Context(), nil, func(context.Context, *Operation) (any, error) { panic("on purpose") })
	const here = "operations_internal_test.go"
	if err == nil || !strings.Contains(err.Error(), here) || !strings.Contains(err.Error(), "on purpose") || strings.Contains(ProblemOf(err).Message, "on purpose") {
		t.Errorf("got %v", err)
	}
}
