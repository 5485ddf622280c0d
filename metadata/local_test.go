package metadata_test

import (
	"strings"
	"testing"

	"github.com/jaydb/jay/metadata"
)

// Ensure that a date with seven digits of a second and no offset, as RavenDB's client for
// Node writes it, is an instant in UTC, and that no other text without an offset is one.
func TestParse_DatesWithoutOffset(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"@expires", "@refresh"} {
		given, err := metadata.Parse([]byte(`{"` + name + `":"2026-12-23T18:08:19.2530000"}`))
		if err != nil || !given.Timed || string(given.Custom) != `{"`+name+`":"2026-12-23T18:08:19.2530000Z"}` {
			t.Errorf("%s: got %s, %v", name, given.Custom, err)
		}
		for _, text := range []string{"2026-12-23T18:08:19.253", "2026-12-23T18:08:19", "2026-12-23T18:08:19.253000", "2026-13-23T18:08:19.2530000", strings.Repeat("1", 27)} {
			if _, err := metadata.Parse([]byte(`{"` + name + `":"` + text + `"}`)); err == nil {
				t.Errorf("%s: %q is taken for an instant", name, text)
			}
		}
	}
}
