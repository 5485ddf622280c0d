package serve

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/jaydb/jay"
)

// Due is one of the configurations of expiration and refresh. Whether they are disabled is a setting of the database; the
// rest is a definition, which is only stored and returned: documents expire and are refreshed within a second of their time.
type Due struct {
	Name      string // of the definition
	Member    string // of a database record
	frequency string
	Disabled  func(*jay.DB) bool
	Configure func(ctx context.Context, db *jay.DB, disabled bool) error
}

// Expiration deletes documents at their @expires, and Refresh writes them again at their
// @refresh.
var (
	Expiration = Due{"expiration", "Expiration", "DeleteFrequencyInSec",
		func(db *jay.DB) bool { return db.ExpirationConfiguration().Disabled },
		func(ctx context.Context, db *jay.DB, disabled bool) error {
			return db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: disabled})
		}}
	Refresh = Due{"refresh", "Refresh", "RefreshFrequencyInSec",
		func(db *jay.DB) bool { return db.RefreshConfiguration().Disabled },
		func(ctx context.Context, db *jay.DB, disabled bool) error {
			return db.ConfigureRefresh(ctx, jay.RefreshConfiguration{Disabled: disabled})
		}}
)

// maxItems is the member of both with the most documents of a run.
const maxItems = "MaxItemsToProcess"

// DueSettings are the members of a configuration; nil for those that it does not have.
type DueSettings map[string]any

// Disabled reports whether the settings switch it off.
func (s DueSettings) Disabled() bool { return s["Disabled"] == true }

// Parse checks a configuration.
func (d *Due) Parse(members map[string]json.RawMessage) (DueSettings, error) {
	out := DueSettings{"Disabled": false}
	for member, text := range members {
		switch {
		case strings.EqualFold(member, "Disabled"):
			var disabled bool
			if json.Unmarshal(text, &disabled) != nil {
				return nil, BadRequest("%.100s must be true or false", member)
			}
			out["Disabled"] = disabled
		case strings.EqualFold(member, d.frequency), strings.EqualFold(member, maxItems):
			var n *int64
			if json.Unmarshal(text, &n) != nil || n != nil && *n <= 0 {
				return nil, BadRequest("%.100s must be a whole number above 0", member)
			}
			if n == nil {
				continue
			}
			if strings.EqualFold(member, maxItems) {
				out[maxItems] = *n
			} else {
				out[d.frequency] = *n
			}
		default:
			return nil, BadRequest("unknown member %.100q", member)
		}
	}
	return out, nil
}

// Stored returns the configuration that was given to a database, and nil if there is none.
func (d *Due) Stored(ctx context.Context, db *jay.DB) (*jay.Definition, error) {
	stored, err := db.Definitions().Get(ctx, ConfigurationKind, d.Name)
	if IsMissing(err) {
		return nil, nil
	}
	return stored, err
}

// InRecord returns the configuration in a database record, and nil if it has none.
func (d *Due) InRecord(given map[string]json.RawMessage) (DueSettings, error) {
	text := given[d.Member]
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil, BadRequest("%s of the database record must be an object", d.Member)
	}
	if _, err := SizeOf(text, PlanOf(reflect.TypeOf(members))); err != nil { // a name that is there twice
		return nil, err
	}
	return d.Parse(members)
}

// isDisabledIn reports whether a database that is made with a record begins with the one
// disabled, as it does in RavenDB unless the record has a configuration.
func (d *Due) isDisabledIn(given map[string]json.RawMessage) bool {
	s, err := d.InRecord(given)
	return err != nil || s == nil || s.Disabled()
}
