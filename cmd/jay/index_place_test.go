package main

import "testing"

// Ensure that --place is the place of two fields, the latitude first, or a field, and stands alone.
func TestCreateIndex_Place(t *testing.T) {
	fields := "Lat"
	for _, row := range []struct {
		name    string
		command createIndexCommand
		want    string // "" for an error
	}{
		{"two fields", createIndexCommand{Place: " Lat , Home.Lng "}, "spatial.point(Lat, Home.Lng)"},
		{"a field", createIndexCommand{Place: "Area"}, "Area"},
		{"a point", createIndexCommand{Place: "spatial.point(Lat, Lng)", Kind: "places"}, "spatial.point(Lat, Lng)"},
		{"beside fields", createIndexCommand{Place: "Area", Fields: &fields}, ""},
		{"of another kind", createIndexCommand{Place: "Area", Kind: "text"}, ""},
		{"nothing", createIndexCommand{}, ""},
	} {
		got, err := row.command.fields()
		if got != row.want || (err == nil) != (row.want != "") || err == nil && row.command.Kind != "places" {
			t.Errorf("%s: got %q of the kind %q, %v", row.name, got, row.command.Kind, err)
		}
	}
}
