package format

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
)

// EtagName is the record under 'm' that holds the etag's ceiling.
// Part of the on-disk format. Must not change.
const EtagName = "etag"

// Identity is the record of an identity: four uvarints.
// Part of the on-disk format. Must not change.
type Identity struct {
	Last    uint64 // last used number
	Node    uint64 // the node that counts with it: a copy needs a floor first
	Ceiling uint64 // reserved ahead under relaxed durability, or 0
	Session uint64 // the process that reserved it, or 0
}

// Append appends the record to dst.
func (r Identity) Append(dst []byte) []byte {
	for _, field := range []uint64{r.Last, r.Node, r.Ceiling, r.Session} {
		dst = binary.AppendUvarint(dst, field)
	}
	return dst
}

// At returns the record as the process of this session should read it: a
// ceiling of another process was left by one that crashed, and all numbers up
// to it may have been used.
func (r Identity) At(session uint64) Identity {
	if r.Session != session {
		r.Last = max(r.Last, r.Ceiling)
	}
	return r
}

func DecodeIdentity(record []byte) (r Identity, err error) {
	for _, field := range []*uint64{&r.Last, &r.Node, &r.Ceiling, &r.Session} {
		n, size := binary.Uvarint(record)
		if size <= 0 {
			return Identity{}, errs.ErrCorrupt
		}
		*field, record = n, record[size:]
	}
	if len(record) > 0 || r.Last > math.MaxInt64 || r.Ceiling > math.MaxInt64 {
		return Identity{}, errs.ErrCorrupt
	}
	return r, nil
}

// Origin is the database behind a node number: what a change vector names.
// It is the record under 'n'. Part of the on-disk format.
type Origin struct {
	Tag string `json:"tag"`
	ID  string `json:"id"` // 16 random bytes in base64 without padding
}

// Settings is the record under 'm' "database": what is fixed at creation.
// Part of the on-disk format.
type Settings struct {
	Separator     string    `json:"separator"`
	CaseSensitive bool      `json:"caseSensitive"`
	Node          uint64    `json:"node"` // what this database writes as; above 0 in a copy
	Created       time.Time `json:"created"`
}

const SettingsName = "database"

// HiLoPrefix begins the ID of every HiLo document, hiloCollection is where new
// ones lie, maxField is what they say.
const (
	HiLoPrefix     = "Raven/HiLo/"
	HiLoCollection = "@hilo"
	HiLoMax        = "Max"
)

// Marks is the private record behind a HiLo document. One that is not
// there has granted nothing and is of node 0.
type Marks struct {
	ids.Marks
	// node is the node that may grant numbers without a node tag: a copy needs a
	// floor first.
	Node uint64
}

// AppendMarks appends the record of a tag: mark, top, node, the number of
// leases, and for each its low and its end, all uvarint.
// Part of the on-disk format. Must not change.
func AppendMarks(dst []byte, m *Marks) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Mark))
	dst = binary.AppendUvarint(dst, uint64(m.Top))
	dst = binary.AppendUvarint(dst, m.Node)
	dst = binary.AppendUvarint(dst, uint64(len(m.Leases)))
	for _, l := range m.Leases {
		dst = binary.AppendUvarint(dst, uint64(l.Low))
		dst = binary.AppendUvarint(dst, uint64(l.End))
	}
	return dst
}

func DecodeMarks(record []byte) (*Marks, error) {
	bad := false
	next := func() int64 {
		n, size := binary.Uvarint(record)
		if size <= 0 || n > math.MaxInt64 {
			bad = true
			return 0
		}
		record = record[size:]
		return int64(n)
	}
	m := &Marks{Marks: ids.Marks{Mark: next(), Top: next()}, Node: uint64(next())}
	for n := next(); n > 0 && !bad; n-- {
		m.Leases = append(m.Leases, ids.Lease{Low: next(), End: next()})
	}
	if bad || len(record) > 0 {
		return &Marks{}, errs.ErrCorrupt
	}
	return m, nil
}

// IndexesName is the record under 'm' that lists the indexes.
// Part of the on-disk format. Must not change.
const IndexesName = "indexes"
