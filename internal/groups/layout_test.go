package groups_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay"
	private "github.com/jaydb/jay/internal/jaytest"
)

// Ensure that the bytes of kept groups are those of docs/format.md, which holds this dump.
func TestGroups_Layout_Golden(t *testing.T) {
	db := private.Dumped(t)
	defer db.Close()
	private.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByCustomer", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total, Price * Quantity"}}))
	put(t, db, "orders/1", `{"Customer":"Ann","Total":12.5,"Price":3,"Quantity":4}`)
	put(t, db, "orders/2", `{"Customer":"Ann","Total":-1}`)
	put(t, db, "orders/3", `{"Total":1e40}`)
	private.InFormat(t, "```\n"+private.KeysBetween(t, db, 'x', 'x')+"```\n")
	if text := private.KeysBetween(t, db, 'm', 'm'); !strings.Contains(text, "indexes") {
		t.Errorf("the declaration is not there: %s", text)
	}
}
