// Command places measures an index of places beside the R*Tree of SQLite, and beside a scan.
//
//	go run ./places [-n DOCUMENTS] [-pairs P] [-dir DIR] [-smoke]
//
// Half of the points lie in a hundred towns, the others anywhere on the earth. Three questions are asked, each from points of its own, in turns of
// both stores: the documents in a circle of about 1,000, the number of them, and the nearest ten. Both must find the same. SQLite has the documents in a table,
// the points in a virtual table of the module rtree, WAL, and finds the nearest by boxes that grow; the distance is computed by the haversine formula in
// Go. Both have their logs behind them: Jay is compacted, and SQLite has copied its log. The figures are medians, and those of the ratios of the pairs, where the blocks are in the caches of both; a scan by the same formula is measured three times.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	n := flag.Int("n", 1_000_000, "documents")
	pairs := flag.Int("pairs", 40, "runs of each question, with both stores in turn")
	dir := flag.String("dir", os.TempDir(), "where the databases are put, and removed")
	smoke := flag.Bool("smoke", false, "few documents and two pairs, to see that it works")
	flag.Parse()
	if *smoke {
		*n, *pairs = 20_000, 12
	}
	if err := run(context.Background(), *n, *pairs, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "places:", err)
		os.Exit(1)
	}
}

type spot struct{ lat, lng float64 }

const at = "spatial.point(Lat, Lng)"

// spots returns points, of which half lie in towns.
func spots(r *rand.Rand, n int) (all, towns []spot) {
	anywhere := func() spot { return spot{math.Asin(2*r.Float64()-1) * 180 / math.Pi, r.Float64()*360 - 180} }
	for range 100 {
		s := anywhere()
		s.lat = max(-80, min(80, s.lat))
		towns = append(towns, s)
	}
	for i := range n {
		s := anywhere()
		if i%2 == 0 {
			t := towns[r.IntN(len(towns))]
			s = spot{t.lat + r.NormFloat64()/20, math.Mod(t.lng+r.NormFloat64()/20+540, 360) - 180}
		}
		all = append(all, s)
	}
	return all, towns
}

// warm is in how many towns questions are asked.
const warm = 10

// kilometers is the haversine formula.
func kilometers(a, b spot) float64 {
	const rad = math.Pi / 180
	h := math.Pow(math.Sin((b.lat-a.lat)*rad/2), 2) + math.Cos(a.lat*rad)*math.Cos(b.lat*rad)*math.Pow(math.Sin((b.lng-a.lng)*rad/2), 2)
	return 2 * 6371.0088 * math.Asin(min(1, math.Sqrt(h)))
}

func body(i int, s spot) []byte {
	return fmt.Appendf(nil, `{"Name":"Shop %d","Lat":%v,"Lng":%v,"Street":"Oak Lane %d","Open":"09:00-18:00","Rating":%d}`, i, s.lat, s.lng, i%200, i%5)
}

func run(ctx context.Context, n, pairs int, in string) (err error) {
	dir, err := os.MkdirTemp(in, "places")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := rand.New(rand.NewPCG(37, 0))
	all, towns := spots(r, n)

	db, err := jay.Open(filepath.Join(dir, "jay"), &jay.Options{CacheBytes: 256 << 20}) // as much as SQLite has
	if err != nil {
		return err
	}
	defer db.Close()
	begun := time.Now()
	for i := 0; i < n; i += 5000 {
		var b jay.Batch
		for j := i; j < min(i+5000, n); j++ {
			b.Put(fmt.Sprintf("shops/%d", j), body(j, all[j]), jay.InCollection("Shops"))
		}
		if _, err := db.Apply(ctx, &b); err != nil {
			return err
		}
	}
	loaded := time.Since(begun)
	begun = time.Now()
	if err := db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{at}}); err != nil {
		return err
	}
	fmt.Printf("jay: %d documents in %v, the index in %v\n", n, loaded.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	if err := db.Compact(ctx); err != nil {
		return err
	}
	begun = time.Now()
	lite, err := newSQLite(filepath.Join(dir, "lite"), all)
	if err != nil {
		return err
	}
	defer lite.db.Close()
	fmt.Printf("sqlite: documents and points in %v\n", time.Since(begun).Round(time.Millisecond))

	// A circle in a town that has about 1,000 documents: distances from its middle are those of a normal distribution.
	radius := 5.56 * math.Sqrt(-2*math.Log(1-min(0.9, 1000/(float64(n)/200))))
	for _, q := range []struct {
		name string
		jay  func(s spot) (int, float64, error)
		lite func(s spot) (int, float64, error)
	}{
		{"documents in a circle", func(s spot) (int, float64, error) { return circle(ctx, db, s, radius) }, func(s spot) (int, float64, error) { return lite.circle(s, radius) }},
		{"IDs in a circle", func(s spot) (int, float64, error) { return ids(ctx, db, s, radius) }, func(s spot) (int, float64, error) { return lite.ids(s, radius) }},
		{"number of them", func(s spot) (int, float64, error) {
			count, err := db.Query("Shops").Where(jay.Within(at, jay.Circle(s.lat, s.lng, radius))).Count(ctx)
			return int(count), 0, err
		}, func(s spot) (int, float64, error) { return lite.count(s, radius) }},
		{"nearest ten", func(s spot) (int, float64, error) { return nearest(ctx, db, s) }, lite.nearest},
	} {
		var mine, theirs, ratios []float64
		found := 0
		for i := range pairs {
			t := towns[i%warm]
			s := spot{t.lat + r.NormFloat64()/40, t.lng + r.NormFloat64()/40}
			if s.lng > 179 || s.lng < -179 {
				continue // SQLite's boxes do not go over the antimeridian
			}
			begun := time.Now()
			one, sum, err := q.jay(s)
			first := time.Since(begun)
			if err != nil {
				return err
			}
			begun = time.Now()
			other, sum2, err := q.lite(s)
			second := time.Since(begun)
			if err != nil {
				return err
			}
			if one != other || math.Abs(sum-sum2) > 1e-3 {
				return fmt.Errorf("%s from %v: %d answers, and %d of SQLite; %v km, and %v", q.name, s, one, other, sum, sum2)
			}
			found += one
			if i < warm {
				continue // the first time in each town its blocks are read
			}
			mine, theirs, ratios = append(mine, first.Seconds()*1000), append(theirs, second.Seconds()*1000), append(ratios, first.Seconds()/second.Seconds())
		}
		fmt.Printf("%-24s %6d answers  jay %8.3f ms  sqlite %8.3f ms  ratio %.2f\n", q.name, found/max(1, pairs), stats.Median(mine), stats.Median(theirs), stats.Median(ratios))
	}
	var scans []float64
	for i := range 3 {
		begun := time.Now()
		q, err := db.RQL(fmt.Sprintf("from Shops use no index where spatial.within(%s, spatial.circle(%v, %v, %v)) select count()", at, radius, towns[i].lat, towns[i].lng), nil)
		if err != nil {
			return err
		}
		for _, err := range q.Iter(ctx) {
			if err != nil {
				return err
			}
		}
		scans = append(scans, time.Since(begun).Seconds()*1000)
	}
	fmt.Printf("%-24s jay %8.1f ms\n", "number of them by a scan", stats.Median(scans))
	return nil
}

// circle reads the documents in a circle.
func circle(ctx context.Context, db *jay.DB, s spot, km float64) (n int, sum float64, err error) {
	for _, err := range db.Query("Shops").Where(jay.Within(at, jay.Circle(s.lat, s.lng, km))).Iter(ctx) {
		if err != nil {
			return n, 0, err
		}
		n++
	}
	return n, 0, nil
}

// ids reads the IDs of the documents in a circle.
func ids(ctx context.Context, db *jay.DB, s spot, km float64) (n int, sum float64, err error) {
	q, err := db.RQL(fmt.Sprintf("from Shops where spatial.within(%s, spatial.circle(%v, %v, %v)) select id()", at, km, s.lat, s.lng), nil)
	if err != nil {
		return 0, 0, err
	}
	for _, err := range q.Iter(ctx) {
		if err != nil {
			return n, 0, err
		}
		n++
	}
	return n, 0, nil
}

// nearest reads the ten nearest documents, with their distances, which it adds up.
func nearest(ctx context.Context, db *jay.DB, s spot) (n int, sum float64, err error) {
	for doc, err := range db.Query("Shops").OrderBy(jay.Near(at, s.lat, s.lng)).Limit(10).Iter(ctx) {
		if err != nil {
			return n, 0, err
		}
		body := doc.Body()
		n++
		sum += kilometers(s, spot{gjson.GetBytes(body, "Lat").Float(), gjson.GetBytes(body, "Lng").Float()})
	}
	return n, sum, nil
}

// store is SQLite.
type store struct {
	db        *sql.DB
	in, inBox *sql.Stmt
	inID      *sql.Stmt
}

func newSQLite(path string, all []spot) (*store, error) {
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal=WAL&_sync=1&_cache_size=-262144&_mmap_size=1073741824")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, text := range []string{
		"create table shops (n integer primary key, id text, body blob, lat real, lng real)",
		"create virtual table points using rtree(n, south, north, west, east)",
	} {
		if _, err := db.Exec(text); err != nil {
			return nil, err
		}
	}
	tx, err := db.Begin()
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		if _, err := tx.Exec("insert into shops values (?, ?, ?, ?, ?)", i, fmt.Sprintf("shops/%d", i), body(i, s), s.lat, s.lng); err != nil {
			return nil, err
		}
		if _, err := tx.Exec("insert into points values (?, ?, ?, ?, ?)", i, s.lat, s.lat, s.lng, s.lng); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	if _, err := db.Exec("pragma wal_checkpoint(truncate)"); err != nil {
		return nil, err
	}
	st := &store{db: db}
	const where = " from points p join shops s on s.n = p.n where p.south >= ? and p.north <= ? and p.west >= ? and p.east <= ?"
	if st.in, err = db.Prepare("select s.lat, s.lng, s.id, s.body" + where); err != nil {
		return nil, err
	}
	if st.inID, err = db.Prepare("select s.lat, s.lng, s.id" + where); err != nil {
		return nil, err
	}
	st.inBox, err = db.Prepare("select s.lat, s.lng" + where)
	return st, err
}

// box returns the box around a circle, a little larger, as the R*Tree rounds to 32 bits.
func box(s spot, km float64) []any {
	lat := km/111.19 + 1e-4
	lng := lat/math.Max(0.01, math.Cos((math.Abs(s.lat)+lat)*math.Pi/180)) + 1e-4
	return []any{s.lat - lat, s.lat + lat, s.lng - lng, s.lng + lng}
}

func (st *store) each(stmt *sql.Stmt, s spot, km float64, to []any, fn func(distance float64)) error {
	rows, err := stmt.Query(box(s, km)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var p spot
	to = append([]any{&p.lat, &p.lng}, to...)
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if d := kilometers(s, p); d <= km {
			fn(d)
		}
	}
	return rows.Err()
}

func (st *store) circle(s spot, km float64) (n int, sum float64, err error) {
	var id string
	var body []byte
	err = st.each(st.in, s, km, []any{&id, &body}, func(float64) { n++ })
	return n, 0, err
}

func (st *store) ids(s spot, km float64) (n int, sum float64, err error) {
	var id string
	err = st.each(st.inID, s, km, []any{&id}, func(float64) { n++ })
	return n, 0, err
}

func (st *store) count(s spot, km float64) (n int, sum float64, err error) {
	err = st.each(st.inBox, s, km, nil, func(float64) { n++ })
	return n, 0, err
}

// nearest looks into boxes that grow, from 500 m on.
func (st *store) nearest(s spot) (n int, sum float64, err error) {
	for km := 0.5; ; km *= 2 {
		var id string
		var body []byte
		var all []float64
		if err := st.each(st.in, s, km, []any{&id, &body}, func(d float64) { all = append(all, d) }); err != nil {
			return 0, 0, err
		}
		if len(all) >= 10 || km > 20_000 {
			slices.Sort(all)
			for _, d := range all[:min(10, len(all))] {
				sum += d
			}
			return min(10, len(all)), sum, nil
		}
	}
}
