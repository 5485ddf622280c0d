package enginetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/jaydb/jay/storage"
)

// testFeatures checks that the format rises with the features that are used, and that one that is not
// known is refused.
func testFeatures(t *testing.T, e storage.Engine) {
	want(t, e.Format().Number, storage.BaseFormat)
	unknown := storage.Feature{Format: storage.Format + 1, Name: "unknown"}
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		tx.RequireFeature(unknown)
		tx.Set([]byte("k"), []byte("v"), nil)
		return nil
	})
	var refused *storage.FormatError
	if !errors.As(err, &refused) || refused.Found != unknown.Format || refused.Newest != storage.Format || !slices.Equal(refused.Features, []string{"unknown"}) {
		t.Errorf("a feature that is not known: got %v, want a FormatError", err)
	}
	want(t, read(t, e, "k"), "absent")
	want(t, e.Format().Number, storage.BaseFormat)

	newest := storage.BaseFormat
	var used []storage.Feature
	for _, f := range storage.AllFeatures {
		if f == storage.FeatureEncrypted { // which no transaction needs
			continue
		}
		newest, used = f.Format, append(used, f)
		for range 2 {
			update(t, e, func(tx storage.Tx) error {
				tx.RequireFeature(f)
				tx.Set([]byte("k"), []byte(f.Name), nil)
				return nil
			})
			want(t, read(t, e, "k"), f.Name)
			want(t, e.Format().Number, f.Format)
			want(t, slices.Equal(e.Format().Features, used), true)
		}
	}
	set(t, e, "k", "v")
	want(t, e.Format().Number, newest)
}
