package format

import "time"

// StandbyName is the record under 'm' of a database that is a standby: it follows another one, which alone writes.
// Part of the on-disk format. Must not change.
const StandbyName = "standby"

// Standby is the record of a standby, as JSON. The commit that applies what a source has sent writes it, too. Part of the
// on-disk format.
type Standby struct {
	Database string    `json:"database,omitempty"` // the ID of the source; empty before the first copy is whole
	Epoch    string    `json:"epoch,omitempty"`    // of the numbers of commits, which the source begins anew when it is opened
	Commit   uint64    `json:"commit,omitempty"`   // the last of the source that is in the standby
	Moment   time.Time `json:"moment,omitzero"`    // of that commit, or a later one at which it was still the newest; by the source's clock

	// Promoted is the node tag that a promotion under way gives the database; empty for none, or for one under the tag of the source.
	Promoted string `json:"promoted,omitempty"`

	// Etag is the last etag that the standby knew when a promotion under the tag of the source began; 0 for none. What
	// that has drawn since is above its floor.
	Etag uint64 `json:"etag,omitempty"`
}

// Whole reports whether a first copy has come to its end: before, there is no database.
func (s Standby) Whole() bool { return s.Database != "" }
