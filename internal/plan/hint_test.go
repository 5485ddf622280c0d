package plan

import (
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Ensure that a query which names an index that is not ready is refused before any key is
// read, and that the error says what the index does.
func TestNew_HintNotReady(t *testing.T) {
	for state, want := range map[index.State]string{index.Building: "still being built", index.Dropping: "being dropped"} {
		c, err := catalog.New(catalog.Record{Next: 2, Indexes: []catalog.RecordEntry{
			{Number: 1, Info: index.Info{Index: index.Index{Name: "n", Fields: []string{"n"}}, Collection: "T", State: state}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(&query.Query{From: "t", UseIndex: "N"}, c, nil, ids.Rules{}, Options{})
		if !errors.Is(err, errs.ErrNoIndex) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrNoIndex with %q", state, err, want)
		}
	}
}
