package query

import (
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay/internal/instant"
)

// Zone is a time zone for parts of instants: day(At, 'Europe/Zurich') is the day of At in Zurich.
// Make one with LoadZone. It is immutable.
//
// The rules of a zone come from the database of the Go program: the system's, the one that ZONEINFO
// names, or that of an imported time/tzdata. They change, so no index holds parts of instants.
type Zone struct {
	name     string
	location *time.Location
}

// maxZoneBytes bounds the name of a zone, and maxZones how many are remembered.
const (
	maxZoneBytes = 64
	maxZones     = 1024
)

// zones are those that were loaded, by name: reading one costs a file.
var zones = struct {
	sync.Mutex
	byName map[string]*Zone
}{byName: make(map[string]*Zone)}

// LoadZone returns the zone with a name of the IANA database, such as Europe/Zurich or UTC. It
// returns ErrCondition for a name that the program's database does not have, for one of more than
// 64 bytes, and for "Local", which depends on the machine. LoadZone is safe for concurrent use.
func LoadZone(name string) (*Zone, error) {
	if name == "" || name == "Local" || len(name) > maxZoneBytes {
		return nil, fmt.Errorf("%w: %.100q is no time zone: it is one of the IANA database, such as Europe/Zurich, of at most %d bytes", ErrCondition, name, maxZoneBytes)
	}
	zones.Lock()
	known := zones.byName[name]
	zones.Unlock()
	if known != nil {
		return known, nil
	}
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %.100q is no time zone that this program knows: %w", ErrCondition, name, err)
	}
	z := &Zone{name, location}
	zones.Lock()
	defer zones.Unlock()
	if len(zones.byName) < maxZones {
		zones.byName[name] = z
	}
	return z, nil
}

// String returns the name of the zone.
func (z *Zone) String() string {
	if z == nil {
		return "UTC"
	}
	return z.name
}

// appendLocal appends an instant, in its canonical spelling, as the clocks of the zone show it. It
// returns false if that is outside of the years 0 to 9999.
func (z *Zone) appendLocal(dst, canonical []byte) ([]byte, bool) {
	t, ok := instant.Parse(canonical)
	if !ok {
		return dst, false
	}
	_, offset := t.In(z.location).Zone()
	out, err := instant.Append(dst, t.Add(time.Duration(offset)*time.Second))
	return out, err == nil
}
