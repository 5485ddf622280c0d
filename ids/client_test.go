package ids_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/ids"
)

// hugeRange is a source that grants one range, and no second.
type hugeRange struct{ high int64 }

func (s *hugeRange) NextRange(context.Context, ids.RangeRequest) (ids.Range, error) {
	r := ids.Range{Prefix: "users/", Low: 1, High: s.high, Size: s.high}
	s.high = 0
	return r, nil
}

func (s *hugeRange) ReturnRange(context.Context, string, int64, int64) (bool, error) {
	return true, nil
}

// Ensure that goroutines that draw from one range at once get each number once.
func TestClient_Next_AtOnce(t *testing.T) {
	const goroutines, each = 8, 1 << 15
	client := ids.NewClient(&hugeRange{high: goroutines * each}, false)
	var drawn [goroutines*each + 1]atomic.Bool
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		group.Go(func() {
			<-begin
			for range each {
				id, err := client.Next(t.Context(), "users")
				n, notNumber := strconv.Atoi(strings.TrimPrefix(id, "users/"))
				if err != nil || notNumber != nil || n < 1 || n > goroutines*each || drawn[n].Swap(true) {
					t.Errorf("got %q (%v): a number of the range that was not drawn before is due", id, err)
					return
				}
			}
		})
	}
	close(begin)
	group.Wait()
	if err := client.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
