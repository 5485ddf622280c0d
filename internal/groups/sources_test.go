package groups_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/groups"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/internal/native"
)

// pieces is the function of these tests, with the name of its entries.
const pieces = "function('groups/pieces', '1') as piece"

// registerPieces registers a function that gives the lines of a document, the first one twice, and fails for some documents.
func registerPieces() (undo func()) {
	return native.Register(native.ID{Name: "groups/pieces", Version: "1"}, func(body []byte) ([][]byte, error) {
		var doc struct{ Lines []json.RawMessage }
		if err := json.Unmarshal(body, &doc); err != nil {
			return nil, err
		}
		var all [][]byte
		for i, line := range doc.Lines {
			if strings.Contains(string(line), "true") {
				return nil, errors.New("no product")
			}
			if all = append(all, line); i == 0 {
				all = append(all, line)
			}
		}
		return all, nil
	})
}

// Ensure that kept sums of the entries of a Go function are a kind of index, and say what a scan says, also of documents for which it fails.
func TestGroups_Function(t *testing.T) {
	defer registerPieces()()
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.Name,
		Kind:  catalog.Kind{Options: groups.Kind.Options},
		Index: jay.Index{Fields: []string{"piece.Product", "Customer"}, Options: map[string]string{"function": pieces, "sums": "piece.Price * 2, piece.At"}},
		Body:  dated,
		Groups: func(r *rand.Rand) string {
			// Kept sums answer a query that groups by all fields and has no condition: some of the 15 of each comparison.
			by := oneOf(r, "piece.Product, Customer", "piece.Product, Customer", "piece.Product, Customer", "Customer", "piece.Product")
			where := oneOf(r, "", "", "", "where Customer = 'c1'", "where piece.Product in ('P1', 7)", "where piece.Product > 'a'")
			return fmt.Sprintf("each %s group by %s %s select %s, count() as N, sum(piece.Price * 2) as S, avg(piece.At) as A", pieces, by, where, by)
		},
		Explained: "kept counts and sums",
	})
}

// Ensure the same of the ends of groups of such entries.
func TestEnds_Function(t *testing.T) {
	defer registerPieces()()
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.EndsName,
		Kind:  catalog.Kind{Options: groups.EndsKind.Options},
		Index: jay.Index{Fields: []string{"piece.Product", "Customer"}, Where: "Total < 8", Options: map[string]string{"function": pieces, "values": "piece.At, piece.Price"}},
		Body:  dated,
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "piece.Product, Customer", "Customer, piece.Product")
			where := "where Total < 8" + oneOf(r, "", " and Customer = 'c1'", " and piece.Product in ('P1', 7)")
			what := oneOf(r, "min(piece.At) as L, max(piece.At) as M", "count(distinct piece.At) as N, first(piece.Price order by piece.At) as F", "last(piece.Price order by piece.At) as Z")
			return fmt.Sprintf("each %s group by %s %s select %s, %s", pieces, by, where, by, what)
		},
		Explained: "each group",
	})
}

// referring returns what body returns, with references to documents of the tests in members and lines.
func referring(body func(*rand.Rand) string) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		to := func() string {
			return oneOf(r, `"THINGS/1"`, `"nothing/1"`, `null`, `7`, fmt.Sprintf(`"things/%d"`, r.IntN(40)), fmt.Sprintf(`"things/%d"`, r.IntN(40)), fmt.Sprintf(`"Things/%d"`, r.IntN(5)))
		}
		var doc map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body(r)), &doc); err != nil {
			panic(err)
		}
		doc["Ref"] = json.RawMessage(to())
		var text strings.Builder
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			value := string(doc[name])
			if name == "Lines" {
				value = strings.ReplaceAll(value, `{"Product"`, `{"Of":`+to()+`,"Product"`)
			}
			fmt.Fprintf(&text, ",%q:%s", name, value)
		}
		return "{" + text.String()[1:] + "}"
	}
}

// Ensure that kept sums of documents and of what they load are a kind of index, and say what a scan says.
func TestGroups_Loads(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.Name,
		Kind:  catalog.Kind{Options: groups.Kind.Options},
		Index: jay.Index{Fields: []string{"load(Ref).Customer", "year(At)"}, Options: map[string]string{"sums": "Total, Price * load(load(Ref).Ref).Quantity"}},
		Body:  referring(order),
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "load(Ref).Customer, year(At)", "load(Ref).Customer", "year(At)")
			where := oneOf(r, "", "", "where load(Ref).Customer = 'ANN'", "where load(Ref).Customer = null", "where year(At) >= '2021'")
			return fmt.Sprintf("group by %s %s select %s, count() as N, sum(Total) as T, sum(Price * load(load(Ref).Ref).Quantity) as P", by, where, by)
		},
		Explained: "kept counts and sums",
	})
}

// Ensure the same of the ends of groups of elements, each of which loads a document.
func TestEnds_Loads(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:  groups.EndsName,
		Kind:  catalog.Kind{Options: groups.EndsKind.Options},
		Index: jay.Index{Fields: []string{"line.Product", "load(line.Of).Customer"}, Where: "Total < 8", Options: map[string]string{"each": "Lines as line", "values": "load(line.Of).Total, line.Price"}},
		Body:  referring(dated),
		Groups: func(r *rand.Rand) string {
			by := oneOf(r, "line.Product, load(line.Of).Customer", "load(line.Of).Customer, line.Product")
			where := "where Total < 8" + oneOf(r, "", " and load(line.Of).Customer = 'c1'", " and line.Product in ('P1', 7)")
			what := oneOf(r, "min(load(line.Of).Total) as L, max(load(line.Of).Total) as M", "count(distinct load(line.Of).Total) as N, first(line.Price order by load(line.Of).Total) as F")
			return fmt.Sprintf("each Lines as line group by %s %s select %s, %s", by, where, by, what)
		},
		Explained: "each group",
	})
}
