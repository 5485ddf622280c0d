package ids_test

import (
	"reflect"
	"testing"

	"github.com/jaydb/jay/ids"
)

// Ensure that no version of any library renames a collection: these answers
// are data in users' databases. They are RavenDB's .NET client's.
func TestPlural_Golden(t *testing.T) {
	golden := map[string]string{
		"Order": "Orders", "Company": "Companies", "Category": "Categories", "Day": "Days",
		"Address": "Addresses", "Box": "Boxes", "Index": "Indices", "Person": "People", "Human": "Humen",
		"Mouse": "Mice", "Blouse": "Blice", "House": "Houses", "Analysis": "Analyses", "Knife": "Knives",
		"Safe": "Saves", "Leaf": "Leafs", "Half": "Halves", "Potato": "Potatos", "Sheep": "Sheep",
		"Catfish": "Catfishes", "Regex": "Regices", "BlogPost": "BlogPosts", "CatsAndDogs": "CatsAndDogs",
		"OrderLine": "OrderLines", "user": "users",
		"Employee": "Employees", "Product": "Products", "Invoice": "Invoices", "Bus": "Buses", "Status": "Statuses",
		"Alias": "Aliases", "Virus": "Viri", "Octopus": "Octopi", "Axis": "Axes", "Datum": "Data", "Stadium": "Stadia",
		"Album": "Albums", "Tomato": "Tomatoes", "Hero": "Heros", "Wolf": "Wolves", "Giraffe": "Giraffes", "Hive": "Hives",
		"Move": "Moves", "Child": "Children", "Woman": "Women", "SalesPerson": "SalesPeople", "Quiz": "Quizzes", "Ox": "Oxen",
		"Fox": "Foxes", "Matrix": "Matrices", "Vertex": "Vertices", "Church": "Churches", "Dish": "Dishes", "Toy": "Toys",
		"Soliloquy": "Soliloquies", "News": "News", "Series": "Series", "Money": "Money", "Gas": "Gas", "Item": "Items",
		"Louse": "Lice", "Café": "Cafés", "URL": "URLs", "BOX": "BOXes",
	}
	for singular, want := range golden {
		if got := ids.Plural(singular); got != want {
			t.Errorf("Plural(%q): got %q, want %q", singular, got, want)
		}
	}
}

type (
	Order          struct{}
	Pair[A, B any] struct{}
	List[A any]    struct{}
)

// Ensure that generic types are named by their arguments too, and that types
// without a name have none.
func TestCollectionName(t *testing.T) {
	tests := []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[Order](), "Orders"},
		{reflect.TypeFor[List[Order]](), "ListsOfOrders"},
		{reflect.TypeFor[Pair[Order, List[Order]]](), "PairsOfOrdersListsOfOrders"},
		{reflect.TypeFor[List[*Order]](), "ListsOfOrders"},
		{reflect.TypeFor[struct{}](), ""},
	}
	for _, test := range tests {
		if got := ids.CollectionName(test.t); got != test.want {
			t.Errorf("%v: got %q, want %q", test.t, got, test.want)
		}
	}
}

// Ensure that a prefix is lower-cased only if it has at most one capital.
func TestPrefix(t *testing.T) {
	for name, want := range map[string]string{
		"Orders": "orders", "users": "users", "BlogPosts": "BlogPosts", "CatsAndDogs": "CatsAndDogs", "Ärzte": "ärzte", "URLs": "URLs",
	} {
		if got := ids.Prefix(name); got != want {
			t.Errorf("Prefix(%q): got %q, want %q", name, got, want)
		}
	}
}
