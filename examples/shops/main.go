// Command shops finds shops: those within a walk, the nearest first with their distances, those on a way, and whose delivery reaches an address.
// docs/places.md has the guide.
//
//	go run ./examples/shops
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay"
)

// Shop is stored in the collection Shops.
type Shop struct {
	ID       string
	Name     string
	Lat, Lng float64
	Delivers string `json:",omitempty"` // where to, as WKT
}

// Found is a shop in a list of answers.
type Found struct {
	Name string
	Km   float64
}

// spot is the place of a shop, in queries and in the index.
const spot = "spatial.point(Lat, Lng)"

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "shops")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir+"/shops.jay", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	err = db.EnsureIndexes(ctx, "Shops", []jay.Index{
		{Name: "Spots", Kind: "places", Fields: []string{spot}},
		{Name: "Deliveries", Kind: "places", Fields: []string{"Delivers"}},
	})
	if err != nil {
		return err
	}
	shops, err := jay.CollectionOf[Shop](db)
	if err != nil {
		return err
	}
	_, err = shops.InsertMany(ctx, []*Shop{
		{Name: "Acorns and More", Lat: 52.5200, Lng: 13.4050, Delivers: "CIRCLE(13.4050 52.5200 d=2000)"},
		{Name: "Oak Bakery", Lat: 52.5163, Lng: 13.3777},
		{Name: "The Nut House", Lat: 52.4870, Lng: 13.4250, Delivers: "POLYGON((13.35 52.47, 13.45 52.47, 13.45 52.50, 13.35 52.50, 13.35 52.47))"},
		{Name: "Far Away Beeches", Lat: 48.1372, Lng: 11.5756},
	})
	if err != nil {
		return err
	}

	here := jay.Point(52.5170, 13.3889)
	fmt.Println("within 2 km, the nearest first:")
	near := shops.Query().Where(jay.Within(spot, jay.Circle(52.5170, 13.3889, 2*jay.Kilometer))).OrderBy(jay.Near(spot, 52.5170, 13.3889))
	for found, err := range jay.Select[Found](near, "Name", jay.Near(spot, 52.5170, 13.3889)+" as Km").Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %s, %.1f km\n", found.Name, found.Km)
	}

	nearest, err := db.RQL("from Shops order by spatial.distance(spatial.point(Lat, Lng), spatial.point(48.2, 11.6)) limit 1", nil)
	if err != nil {
		return err
	}
	for row, err := range nearest.Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("the nearest to Munich: %s\n", row.Document.Body())
	}

	n, err := shops.Query().Where(jay.Covers("Delivers", here)).Count(ctx)
	if err != nil {
		return err
	}
	fmt.Println("deliver here:", n)

	_, err = shops.Query().Where(jay.Within(spot, jay.Circle(97, 13, 2))).Count(ctx)
	var place *jay.PlaceError
	if errors.As(err, &place) {
		fmt.Printf("refused: %s, and not %s\n", place.Rule, place.Value)
	}
	return nil
}
