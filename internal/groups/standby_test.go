package groups_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jaydb/jay"
	private "github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/standby"
)

// Ensure that a standby has the groups of its source, though the source raises its format by them while the standby follows.
func TestGroups_Standby(t *testing.T) {
	source := private.Memory(t, nil)
	put(t, source, "orders/1", `{"Customer":"Ann","Total":1}`)
	s, err := standby.Open(filepath.Join(t.TempDir(), "copy"), standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	private.Must(t, err)
	defer s.Close()
	orders(t, source)
	put(t, source, "orders/2", `{"Customer":"Ann","Total":1e30}`)
	private.Must(t, source.Delete(ctx, "orders/1"))
	const want = `[{"Customer":"Ann","N":1,"T":1e+30}]`
	got := ""
	for more := private.Patience(); more(got == want); {
		db, err := s.DB(ctx)
		private.Must(t, err)
		q, err := db.RQL(dashboard, nil)
		private.Must(t, err)
		rows, err := q.NoScan().All(ctx)
		if err != nil { // the index is not there yet, or there is another database
			continue
		}
		got = ""
		for _, row := range rows {
			got += string(row.JSON)
		}
		got = fmt.Sprintf("[%s]", got)
	}
	private.Equal(t, got, want)
	db, err := s.DB(ctx)
	private.Must(t, err)
	private.Verify(t, db)
}
