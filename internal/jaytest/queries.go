package jaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Shop fills a database with 300 orders of three states and ten customers.
func Shop(t testing.TB, db *jay.DB) {
	t.Helper()
	var b jay.Batch
	for i := range 300 {
		body := fmt.Sprintf(`{"Customer":"customers/%d","Status":%q,"Total":%d,"Lines":[{"Product":"p%d"},{"Product":"p%d"}]}`,
			i%10, []string{"open", "paid", "Sent"}[i%3], i*7%100, i%5, i%7)
		b.Put(fmt.Sprintf("orders/%03d", i), json.RawMessage(body), jay.InCollection("Orders"))
	}
	_, err := db.Apply(context.Background(), &b)
	Must(t, err)
}

// Rows returns the answers of a query: the IDs of documents, or the JSON of rows.
func Rows(t testing.TB, db *jay.DB, rql string) []string {
	t.Helper()
	q, err := db.RQL(rql, nil)
	Must(t, err)
	var out []string
	for row, err := range q.Iter(context.Background()) {
		Must(t, err)
		if row.Document != nil {
			out = append(out, row.Document.ID())
		} else {
			out = append(out, string(row.JSON))
		}
	}
	return out
}

// CollectionsText returns what Collections says, as text.
func CollectionsText(t testing.TB, db *jay.DB) string {
	t.Helper()
	all, err := db.Collections(context.Background())
	Must(t, err)
	parts := make([]string, len(all))
	for i, c := range all {
		parts[i] = fmt.Sprint(c.Name, " ", c.Documents)
	}
	return strings.Join(parts, ", ")
}
