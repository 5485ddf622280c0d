package format

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
)

// EtagName is the record under 'm' up to which etags are reserved (the high-water
// mark). Part of the on-disk format. Must not change.
const EtagName = "etag"

// MarkName is the record under 'm' with the etag up to which records of deletions may
// have been removed. Part of the on-disk format. Must not change.
const MarkName = "deletes"

// WalkedName is the record under 'm' with the etag up to which no record of a deletion
// is left, so that none is looked for there again. Part of the on-disk format.
const WalkedName = "walked"

// DefinitionsName is the record under 'm' with the version of the definitions, a number that each change of
// a key in Defining raises. Only stores that several processes write to have it. Part of the on-disk format.
const DefinitionsName = "definitions"

// Defining are the keys of which one changes with whatever a process remembers of a store: the indexes, the rules of
// revisions, the settings, and the definitions of programs, with the rules of schemas.
var Defining = [...][]byte{
	AppendKey(nil, SpaceMeta, IndexesName),
	AppendKey(nil, SpaceMeta, RevisionsName),
	AppendKey(nil, SpaceMeta, SettingsName),
	LastDefinitionKey(),
}

// IsDefining reports whether a key is in Defining.
func IsDefining(key []byte) bool {
	return slices.ContainsFunc(Defining[:], func(d []byte) bool { return bytes.Equal(key, d) })
}

// SessionName is the record under 'm' with the session of the process that has a store for itself, as that shows it to
// others: see shared.Owner. It is in no store.
const SessionName = "session"

// FloorPrefix begins the names under 'm' of those that need the records of deletions
// after an etag. Part of the on-disk format. Must not change.
const FloorPrefix = "floor/"

// RenamePrefix begins the names under 'm' of the renames of collections that are not
// finished; the folded old name follows. Part of the on-disk format. Must not change.
const RenamePrefix = "rename/"

// Rename is the record of a rename that is not finished: both names as they were given.
// Part of the on-disk format.
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Identity is the record of an identity: four uvarints.
// Part of the on-disk format. Must not change.
type Identity struct {
	Last    uint64 // last used number
	Node    uint64 // the node that owns the counter: a copy needs a floor first
	Ceiling uint64 // reserved up to here under Relaxed durability, or 0
	Session uint64 // the process that made the reservation, or 0
}

// Append appends the record to dst.
func (r Identity) Append(dst []byte) []byte {
	for _, field := range []uint64{r.Last, r.Node, r.Ceiling, r.Session} {
		dst = binary.AppendUvarint(dst, field)
	}
	return dst
}

// At returns the record as the process of this session must read it. A reservation
// of another session was left by a process that crashed: all numbers up to it may
// have been used.
func (r Identity) At(session uint64) Identity {
	if r.Session != session {
		r.Last = max(r.Last, r.Ceiling)
	}
	return r
}

// DecodeIdentity is the inverse of Identity.Append.
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

// RandomID returns 16 random bytes in base64 without padding, as IDs of databases and of backups are. It goes through a URL
// unescaped, where a plus is a blank and a slash ends a segment: an e is written for each plus and an f for each slash. The
// other characters are the same in both alphabets of base64, so that IDs, old ones with a plus or a slash
// included, have one spelling. It costs less than two of the 128 random bits.
func RandomID(random io.Reader) (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(random, id[:]); err != nil {
		return "", err
	}
	return plainInURL.Replace(base64.RawStdEncoding.EncodeToString(id[:])), nil
}

var plainInURL = strings.NewReplacer("+", "e", "/", "f")

// Settings is the record under 'm' "database": what is fixed at creation, and
// PrefixCollections, ExpirationDisabled and RefreshDisabled, which can change.
// Part of the on-disk format.
type Settings struct {
	Separator     string    `json:"separator"`
	CaseSensitive bool      `json:"caseSensitive"`
	Node          uint64    `json:"node"` // what this database writes as; above 0 in a copy
	Created       time.Time `json:"created"`

	// PrefixCollections makes the prefix of an ID suggest a collection. Databases
	// without the member do not have it.
	PrefixCollections bool `json:"prefixCollections,omitempty"`

	// ExpirationDisabled and RefreshDisabled leave @expires, and @refresh, in the metadata
	// of documents without effect. In databases without the members they have it.
	ExpirationDisabled bool `json:"expirationDisabled,omitempty"`
	RefreshDisabled    bool `json:"refreshDisabled,omitempty"`
}

// SettingsName is the name under 'm' of the Settings. Part of the on-disk format.
// Must not change.
const SettingsName = "database"

// HiLoPrefix begins the ID of every HiLo document, HiLoCollection is the collection
// of new ones, and HiLoMax the field with the highest number granted.
const (
	HiLoPrefix     = "Raven/HiLo/"
	HiLoCollection = "@hilo"
	HiLoMax        = "Max"
)

// Marks is the private record of a HiLo tag, beside its document. A tag without a
// record has granted nothing and belongs to node 0.
type Marks struct {
	ids.Marks
	// Node is the node that may grant numbers without a node tag: a copy needs a
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

// DecodeMarks is the inverse of AppendMarks.
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
