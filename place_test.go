package jay_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// placed is a document with a place.
type placed struct {
	ID, Name string
	Lat, Lng float64
}

// Ensure queries of the builder find places, order by distance, and show it; and that a mistake in a shape is the query's.
func TestQuery_Places(t *testing.T) {
	db := jaytest.Memory(t, nil)
	shops, err := jay.CollectionOf[placed](db)
	jaytest.Must(t, err)
	for _, s := range []placed{{Name: "Near", Lat: 52.52, Lng: 13.40}, {Name: "Far", Lat: 48.1, Lng: 11.6}, {Name: "Middle", Lat: 52.4, Lng: 13.0}} {
		_, err := shops.Insert(ctx, &s)
		jaytest.Must(t, err)
	}
	const at = "spatial.point(Lat, Lng)"
	var names []string
	for s, err := range shops.Query().Where(jay.Within(at, jay.Circle(52.5, 13.4, 50*jay.Mile))).OrderBy(jay.Near(at, 52.5, 13.4)).Iter(ctx) {
		jaytest.Must(t, err)
		names = append(names, s.Name)
	}
	if fmt.Sprint(names) != "[Near Middle]" {
		t.Errorf("got %v", names)
	}
	n, err := shops.Query().Where(jay.Or(jay.Disjoint(at, jay.Box(50, 10, 55, 15)), jay.Covers(at, jay.Point(52.4, 13)), jay.Intersects(at, jay.WKT("LINESTRING(13.4 52.52, 13.4 60)")))).Count(ctx)
	if err != nil || n != 3 {
		t.Errorf("got %d, %v", n, err)
	}
	_, err = shops.Query().Where(jay.Within(at, jay.Circle(91, 0, 5))).Count(ctx)
	var e *jay.PlaceError
	if !errors.As(err, &e) || !errors.Is(err, jay.ErrQuery) || e.Rule != "a latitude is between -90 and 90" || e.Value != "91" {
		t.Errorf("got %v", err)
	}
	_, err = shops.Query().OrderBy(jay.Near(at, 0, 181)).Count(ctx)
	if !errors.As(err, &e) || !errors.Is(err, jay.ErrQuery) || e.Value != "181" {
		t.Errorf("got %v", err)
	}
}

func ExampleShape() {
	shops, err := jay.CollectionOf[placed](example())
	check(err)
	_, err = shops.InsertMany(ctx, []*placed{{Name: "Mitte", Lat: 52.52, Lng: 13.40}, {Name: "Munich", Lat: 48.1, Lng: 11.6}, {Name: "Neukölln", Lat: 52.48, Lng: 13.43}})
	check(err)
	const at = "spatial.point(Lat, Lng)"
	for s, err := range shops.Query().Where(jay.Within(at, jay.Circle(52.5, 13.4, 5*jay.Mile))).OrderBy(jay.Near(at, 52.5, 13.4)).Iter(ctx) {
		check(err)
		fmt.Println(s.Name)
	}
	// Output:
	// Mitte
	// Neukölln
}

func ExamplePlaceError() {
	db := example()
	_, err := db.Query("Shops").Where(jay.Within("Location", jay.WKT("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))"))).Count(ctx)
	var e *jay.PlaceError
	if errors.As(err, &e) {
		fmt.Println(e.Rule)
	}
	// Output: a ring does not cross itself or another one
}

// Ensure that tags declare indexes of places, of pairs of numbers by the struct that they are in and by their names, and that half a pair is refused.
func TestEnsureIndexes_Places(t *testing.T) {
	t.Parallel()
	type address struct {
		Lat float64 `json:"lat" jay:"latitude"`
		Lng float32 `json:"lng" jay:"longitude"`
	}
	type shop struct {
		ID     string
		Lat    float64  `jay:"latitude"`
		Lng    *float64 `jay:"longitude"`
		HomeN  float64  `jay:"latitude=home"`
		HomeE  float64  `jay:"longitude=home"`
		Office address
		Area   string   `jay:"place"`
		Stops  []string `jay:"place=stops"`
	}
	db := jaytest.Memory(t, nil)
	c, err := jay.CollectionOf[shop](db)
	jaytest.Must(t, err)
	jaytest.Must(t, c.EnsureIndexes(ctx))
	jaytest.Must(t, c.EnsureIndexes(ctx)) // nothing is left to do
	list, err := db.Indexes(ctx, c.Name())
	jaytest.Must(t, err)
	var got []string
	for _, ix := range list {
		if ix.Kind != "places" || ix.State != jay.IndexReady {
			t.Errorf("%s is %s, %s", ix.Name, ix.Kind, ix.State)
		}
		got = append(got, ix.Name+"="+strings.Join(ix.Fields, ";"))
	}
	slices.Sort(got)
	if want := []string{"Area=Area", "home=spatial.point(HomeN, HomeE)", "spatial.point(Lat, Lng)=spatial.point(Lat, Lng)", "spatial.point(Office.lat, Office.lng)=spatial.point(Office.lat, Office.lng)", "stops=Stops"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	lng := 13.4
	_, err = c.Put(ctx, &shop{ID: "shops/1", Lat: 52.5, Lng: &lng, Office: address{Lat: -10, Lng: 179.5}})
	jaytest.Must(t, err)
	for field, center := range map[string]jay.Shape{"spatial.point(Lat, Lng)": jay.Circle(52.5, 13.4, 1), "spatial.point(Office.lat, Office.lng)": jay.Circle(-10, -179.9, 100)} {
		n, err := c.Query().Where(jay.Within(field, center)).NoScan().Count(ctx)
		jaytest.Must(t, err)
		if n != 1 {
			t.Errorf("%s finds %d", field, n)
		}
	}

	type half struct {
		ID  string
		Lat float64 `jay:"latitude"`
	}
	tagsRefused[half](t, db, "no field of the struct has longitude")
	type twice struct {
		ID         string
		Lat, Other float64 `jay:"latitude"`
	}
	tagsRefused[twice](t, db, "the field Lat has it, too")
	type text struct {
		ID  string
		Lat string `jay:"latitude"`
	}
	tagsRefused[text](t, db, "it is of a number")
	type number struct {
		ID string
		At int `jay:"place"`
	}
	tagsRefused[number](t, db, "a place is a text")
	type listed struct {
		ID    string
		Stops []address
	}
	tagsRefused[listed](t, db, "each element of a list")
}
