package inspect

import "github.com/jaydb/jay/ids"

// Report is what Run returns: the IDs of a database, all at one moment. The types of package jay
// with the same fields say what each means.
type Report struct {
	NodeTag              string
	Documents            int64
	Expiring             int64
	DeletedWithRevisions int64
	Prefixes             []Prefix
	HiLo                 []HiLo
	Identities           []Identity
	Etags                Etags
	Warnings             []Warning
}

// Prefix counts the documents of one collection whose IDs begin alike.
type Prefix struct {
	Prefix     string
	Collection string
	Rest       bool
	Counts
	HighestHiLo     int64
	HighestIdentity int64
}

// Counts counts documents by the strategy that their IDs suggest.
type Counts struct {
	Documents  int64
	HiLo       int64
	Identity   int64
	ServerSide int64
	GUID       int64
	Semantic   int64
}

// of returns the count of the IDs of a strategy.
func (c *Counts) of(s ids.Strategy) *int64 {
	switch s {
	case ids.HiLo:
		return &c.HiLo
	case ids.Identity:
		return &c.Identity
	case ids.ServerSide:
		return &c.ServerSide
	case ids.GUID:
		return &c.GUID
	}
	return &c.Semantic
}

// HiLo accounts for the numbers of one HiLo tag.
type HiLo struct {
	Tag               string
	Document          bool
	Max               *int64
	ServerHi          int64
	Mark              int64
	Top               int64
	Highest           int64
	OpenLeases        int
	Unused            int64
	InOpenLeases      int64
	HeldInThisProcess int64
	LostInThisProcess int64
	ReturnedLate      int64
	Deleted           int64
	Unaccounted       int64
	NeedsFloor        bool
	Forecast
}

// Forecast estimates how long the numbers of a counter last.
type Forecast struct {
	PerDay    *float64
	Recent    bool
	YearsLeft *float64
}

// Etags describes the counter of all writes.
type Etags struct {
	Last uint64
	Forecast
}

// Identity accounts for the numbers of one identity.
type Identity struct {
	Name       string
	Last       int64
	Highest    int64
	Unused     int64
	Deleted    int64
	Lost       int64
	NeedsFloor bool
	Forecast
}

// Warning is a finding that deserves attention.
type Warning struct {
	Kind string
	Name string
	Text string
}

// The kinds of warnings: see IDWarningKind of package jay.
const (
	WarnAboveMark      = "above-mark"
	WarnAboveIdentity  = "above-identity"
	WarnHiLoEdited     = "hilo-edited"
	WarnHiLoMissing    = "hilo-missing"
	WarnHiLoWithoutMax = "hilo-without-max"
	WarnNeedsCapacity  = "needs-capacity"
	WarnNeedsFloor     = "needs-floor"
	WarnSharedPrefix   = "shared-prefix"
	WarnTooMany        = "too-many"
)
