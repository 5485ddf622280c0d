package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/native"
)

// order is a document of the function of these tests, and split is an entry that it gives.
type (
	order struct {
		Lines []struct {
			Product string
			Pieces  int
		}
		Fails string
	}
	split struct {
		Product string
		Half    float64
	}
)

// splitLines gives two entries for each line.
func splitLines(o order) (all []split, err error) {
	switch o.Fails {
	case "":
	case "panic":
		panic("no lines")
	case "many":
		return make([]split, native.MaxEntries+1), nil
	default:
		return nil, errors.New(o.Fails)
	}
	for _, line := range o.Lines {
		half := split{line.Product, float64(line.Pieces) / 2}
		all = append(all, half, half)
	}
	return all, nil
}

// register registers splitLines in a version, and returns what undoes that. The factor is what the version does otherwise.
func register(t testing.TB, version string, factor float64) (undo func()) {
	t.Helper()
	undo = native.Register(native.ID{Name: "orders/split", Version: version}, func(body []byte) (entries [][]byte, err error) {
		var o order
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, err
		}
		all, err := splitLines(o)
		for _, s := range all {
			s.Half *= factor
			text, _ := json.Marshal(s)
			entries = append(entries, text)
		}
		return entries, err
	})
	return undo
}

// bySplit is an index of the function.
func bySplit(version string) jay.Computed {
	return jay.Computed{
		Name: "Split",
		Maps: []index.Map{{Collection: "Orders", Function: "orders/split", Version: version, As: "half", Where: "half.Product != 'none'",
			Select: []index.Member{{Name: "Product", Expression: "half.Product"}, {Name: "Half", Expression: "half.Half"}, {Name: "Customer"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "Count", Expression: "count()"}, {Name: "Sum", Expression: "sum(Half)"}, {Name: "Most", Expression: "max(Half)"}}},
	}
}

const (
	fromSplit = "from index 'Split' order by Product"
	scanSplit = "from Orders each function('orders/split', '%s') as half group by half.Product where half.Product != 'none' order by half.Product select half.Product as Product, count() as Count, sum(half.Half) as Sum, max(half.Half) as Most"
)

// Ensure that an index of a Go function keeps what a scan that calls it says, after random histories and a build, without a scan, and that it notes
// the documents for which the function fails.
func TestFunctions_History(t *testing.T) {
	ctx := t.Context()
	defer register(t, "1", 1)()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 182))
	h := begin(t, bySplit("1"))
	in := jay.InCollection("Orders")
	body := func() string {
		if r.IntN(8) == 0 {
			return fmt.Sprintf(`{"Fails":%q}`, []string{"panic", "reason"}[r.IntN(2)])
		}
		if r.IntN(12) == 0 {
			return `{"Lines":7}` // it does not fit
		}
		var lines []string
		for range r.IntN(4) {
			lines = append(lines, fmt.Sprintf(`{"Product":%q,"Pieces":%d}`, []string{"a", "b", "none"}[r.IntN(3)], r.IntN(9)))
		}
		return `{"Lines":[` + strings.Join(lines, ",") + `]}`
	}
	compare := func(from interface {
		RQL(string, map[string]any) (jay.Query[jay.Row], error)
	}) {
		t.Helper()
		var rows [2]string
		for i, text := range []string{fromSplit, fmt.Sprintf(scanSplit, "1")} {
			q, err := from.RQL(text, nil)
			jaytest.Must(t, err)
			if i == 0 {
				q = q.NoScan()
			} else {
				q = q.NoIndex()
			}
			all, err := q.All(ctx)
			jaytest.Must(t, err)
			for _, row := range all {
				rows[i] += string(row.JSON)
			}
		}
		if rows[0] != rows[1] {
			t.Fatalf("got %s, want %s", rows[0], rows[1])
		}
	}
	for range 60 {
		id := fmt.Sprint("orders/", r.IntN(20))
		switch r.IntN(6) {
		case 0:
			h.remove(id)
		case 1:
			h.expire(id, body(), in)
		case 2:
			h.transact(id, body(), in, func(tx *jay.Tx) { compare(tx) })
		default:
			h.put(id, body(), in)
		}
		compare(h.db)
	}
	h.put("orders/fails", `{"Fails":"reason"}`, in)
	compare(h.db)
	jaytest.Verify(t, h.db)
	failing := 0
	for _, body := range h.bodies {
		if strings.Contains(body, "Fails") || strings.Contains(body, "7}") && !strings.Contains(body, "[") {
			failing++
		}
	}
	list, err := jay.ComputedOf(h.db).Errors(ctx, "Split", 100)
	jaytest.Must(t, err)
	seen := make(map[string]bool)
	for _, f := range list {
		if _, there := h.bodies[f.ID]; there { // another one has expired, and is not deleted yet
			seen[f.ID] = true
		}
		if f.Field != "function('orders/split', '1') as half" || !strings.Contains(f.Reason, "function") {
			t.Errorf("got %+v", f)
		}
	}
	jaytest.Equal(t, len(seen), failing)
	parts, err := h.db.Indexes(ctx, "Orders")
	jaytest.Must(t, err)
	for _, part := range parts { // each has the notes of its own
		list, err := jay.IndexOf(h.db, "Orders", part.Name).Errors(ctx, "", 100)
		jaytest.Must(t, err)
		jaytest.Equal(t, slices.ContainsFunc(list, func(f jay.IndexError) bool { return f.ID == "orders/fails" }), true)
	}
	defer checks.SetBuildTables(1, 64<<10, 16<<10)()
	jaytest.Must(t, jay.ComputedOf(h.db).Drop(ctx, "Split"))
	jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, bySplit("1")))
	compare(h.db)
	jaytest.Verify(t, h.db)
}

// Ensure that a program without the function reads, backs up, verifies and repairs the database, and that its writes into the collection, and its queries of the index, are
// refused with an error that names the function; and that one with it goes on.
func TestFunctions_Missing(t *testing.T) {
	ctx := t.Context()
	undo := register(t, "1", 1)
	dir := t.TempDir()
	db := jaytest.Open(t, dir, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, bySplit("1")))
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"Product":"a","Pieces":3}]}`, jay.InCollection("Orders"))
	want := jaytest.Rows(t, db, fromSplit)
	jaytest.Must(t, db.Close())
	undo()

	db = jaytest.Open(t, dir, nil)
	var missing *jay.FunctionError
	_, err := db.Put(ctx, "orders/2", json.RawMessage(`{}`), jay.InCollection("Orders"))
	if !errors.As(err, &missing) || missing.Function != "orders/split" || missing.Version != "1" || missing.Collection != "Orders" || !strings.HasPrefix(missing.Index, "computed:Split") {
		t.Errorf("a write: got %v", err)
	}
	if err := db.Delete(ctx, "orders/1"); !errors.As(err, &missing) {
		t.Errorf("a deletion: got %v", err)
	}
	jaytest.Put(t, db, "others/1", `{}`, jay.InCollection("Others"))
	jaytest.Must(t, db.EnsureIndex(ctx, "Others", jay.Index{Fields: []string{"A"}})) // a change of the record of indexes
	list, err := db.Indexes(ctx, "Orders")
	if err != nil || len(list) != 2 || list[0].State != jay.IndexReady {
		t.Errorf("got %+v, %v", list, err)
	}
	q, err := db.RQL(fromSplit, nil)
	jaytest.Must(t, err)
	if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "function('orders/split', '1')") {
		t.Errorf("a query: got %v", err)
	}
	if err := jay.ComputedOf(db).Ensure(ctx, bySplit("2"), jay.ReplaceIndex()); !errors.As(err, &missing) || missing.Version != "2" || !errors.Is(err, jay.ErrIndex) {
		t.Errorf("a declaration: got %v", err)
	}
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Kind: "groups", Fields: []string{"half.Product"}, Options: map[string]string{"function": "function('orders/split', '3') as half"}}); !errors.As(err, &missing) || missing.Version != "3" {
		t.Errorf("an index of groups: got %v", err)
	}
	jaytest.Equal(t, len(jaytest.Rows(t, db, "from Orders")), 1)
	report, err := db.Verify(ctx, nil)
	if err != nil || report.Found != 0 || !strings.Contains(strings.Join(report.NotCompared, "; "), "orders/split") {
		t.Errorf("got %+v, %v", report, err)
	}
	jaytest.Must(t, db.Close())
	into := filepath.Join(t.TempDir(), "repaired")
	repaired, err := jay.Repair(ctx, dir, into, nil, nil)
	if err != nil || len(repaired.Lost) != 0 {
		t.Fatalf("got %+v, %v", repaired, err)
	}

	defer register(t, "1", 1)()
	for _, dir := range []string{dir, into} {
		db = jaytest.Open(t, dir, nil)
		checks.WaitIndexTasks(db)
		q, err := db.RQL(fromSplit, nil)
		jaytest.Must(t, err)
		rows, err := q.NoScan().All(ctx)
		jaytest.Must(t, err)
		if len(rows) != 1 || string(rows[0].JSON) != want[0] {
			t.Errorf("got %v, want %v", rows, want)
		}
		jaytest.Put(t, db, "orders/2", `{"Lines":[{"Product":"b","Pieces":3}]}`, jay.InCollection("Orders"))
		jaytest.Verify(t, db)
		jaytest.Must(t, db.Close())
	}
}

// Ensure that another version is built beside the old one, which answers until then, and takes its place.
func TestFunctions_Version(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	defer register(t, "1", 1)()
	defer register(t, "2", 10)()
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, bySplit("1")))
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"Product":"a","Pieces":3}]}`, jay.InCollection("Orders"))
	if err := jay.ComputedOf(db).Ensure(ctx, bySplit("2")); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("got %v", err)
	}
	building, release, restore := checks.HoldBuild()
	done := make(chan error, 1)
	go func() { done <- jay.ComputedOf(db).Ensure(ctx, bySplit("2"), jay.ReplaceIndex()) }()
	<-building
	jaytest.Put(t, db, "orders/2", `{"Lines":[{"Product":"a","Pieces":1}]}`, jay.InCollection("Orders"))
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, fromSplit)), `[{"Product":"a","Count":4,"Sum":4,"Most":1.5}]`)
	release()
	jaytest.Must(t, <-done)
	checks.WaitIndexTasks(db) // the old one is dropped
	restore()
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, fromSplit)), `[{"Product":"a","Count":4,"Sum":40,"Most":15}]`)
	jaytest.Verify(t, db)
}

// Ensure what is no function and no declaration of one, that a strict index refuses the documents for which the function fails, and that a preview says why.
func TestFunctions_Refused(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	defer register(t, "1", 1)()
	for _, m := range []index.Map{
		{Collection: "Orders", Function: "orders/split", As: "half"},
		{Collection: "Orders", Version: "1", As: "half"},
		{Collection: "Orders", Function: "orders/split", Version: "1"},
		{Collection: "Orders", Function: "orders/split", Version: "1", As: "half", Each: "Lines"},
		{Collection: "Orders", Function: strings.Repeat("x", 129), Version: "1", As: "half"},
		{Collection: "Orders", Function: "a\x01", Version: "1", As: "half"},
	} {
		m.Select = []index.Member{{Name: "N", Expression: "half.N"}}
		if err := jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "i", Maps: []index.Map{m}}); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("%+v: got %v", m, err)
		}
	}
	for _, text := range []string{"each function('a') as x", "each function(a, '1') as x", "each function('', '1') as x", "each function('a', '1')"} {
		if _, err := db.RQL("from Orders "+text+" select x", nil); err == nil {
			t.Errorf("%s: it is accepted", text)
		}
	}
	strict := bySplit("1")
	strict.Strict = true
	preview, err := jay.ComputedOf(db).Preview(ctx, strict)
	jaytest.Must(t, err)
	jaytest.Equal(t, len(preview.Without), 0)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, strict))
	for _, body := range []string{`{"Fails":"reason"}`, `{"Fails":"panic"}`, `{"Fails":"many"}`} {
		_, err := db.Put(ctx, "orders/1", json.RawMessage(body), jay.InCollection("Orders"))
		var failed *jay.ComputeError
		if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "the function failed") || !strings.Contains(failed.Field, "orders/split") {
			t.Errorf("%s: got %v", body, err)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("two functions of one name and version")
			}
		}()
		register(t, "1", 1)
	}()
}

func init() { jay.RegisterFunction("orders/typed", "1", splitLines) }

// Ensure that RegisterFunction decodes documents and encodes entries.
func TestRegisterFunction(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "orders/1", `{"Lines":[{"Product":"a","Pieces":3},{"Product":"b","Pieces":4}]}`, jay.InCollection("Orders"))
	jaytest.Put(t, db, "orders/2", `{"Fails":"many"}`, jay.InCollection("Orders"))
	rows := jaytest.Rows(t, db, "from Orders each function('orders/typed', '1') as half group by half.Product order by half.Product select half.Product, sum(half.Half) as Sum")
	jaytest.Equal(t, fmt.Sprint(rows), `[{"half.Product":"a","Sum":3} {"half.Product":"b","Sum":4}]`)
}
