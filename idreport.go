package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/inspect"
)

// IDReport is the result of InspectIDs: the IDs of a database, from one snapshot.
type IDReport struct {
	// NodeTag is the tag in this database's own HiLo and server-side IDs.
	NodeTag string `json:"nodeTag"`
	// Documents is the number of all documents.
	Documents int64 `json:"documents"`
	// Expiring is the number of documents that have an instant at which they expire. The numbers in their IDs
	// are in use until they are deleted, and count as deleted then.
	Expiring int64 `json:"expiring,omitempty"`
	// DeletedWithRevisions is the number of deleted documents that have revisions. A new document with such an
	// ID continues the history of the deleted one.
	DeletedWithRevisions int64 `json:"deletedWithRevisions,omitempty"`
	// Prefixes are sorted by prefix and collection. There are at most 10,000; the last entry then combines all
	// that come later in the order of IDs.
	Prefixes []IDPrefix `json:"prefixes"`
	// HiLo are the HiLo tags that have granted numbers here or that have a
	// document, sorted, at most 10,000.
	HiLo []HiLoReport `json:"hilo"`
	// Identities are sorted by name, at most 10,000.
	Identities []IdentityReport `json:"identities"`
	// Etags describes the counter from which server-side IDs are made.
	Etags EtagReport `json:"etags"`
	// Warnings are findings that need attention. None of them means that an ID can be made twice.
	Warnings []IDWarning `json:"warnings"`
}

// IDPrefix counts the documents of one collection whose IDs have the same prefix.
type IDPrefix struct {
	// Prefix is the part of the ID up to and including its last separator, folded as the database folds IDs; ""
	// for documents whose ID has no separator. A node tag at the end of an ID belongs to the number before it,
	// even with the separator "-".
	Prefix string `json:"prefix"`
	// Collection is the name of the collection, in the spelling that was found first.
	Collection string `json:"collection"`
	// Rest marks the entry that combines all prefixes that are not listed individually. Its Prefix and
	// Collection are "".
	Rest bool `json:"rest,omitempty"`
	// IDCounts are the numbers of the documents by strategy.
	IDCounts
	// HighestHiLo is the highest number of a HiLo ID with this database's node tag, 0 if there is none. On a
	// store that several processes write to, the tags of all processes count, including processes that have
	// ended.
	HighestHiLo int64 `json:"highestHiLo"`
	// HighestIdentity is the highest number of an identity ID, 0 if there is
	// none.
	HighestIdentity int64 `json:"highestIdentity"`
}

// IDCounts counts documents by the ID strategy that their IDs suggest. The database does not store the
// strategy: users/7 may also be a semantic ID.
type IDCounts struct {
	// Documents is the sum of the other fields.
	Documents int64 `json:"documents"`
	// HiLo counts IDs of a prefix, a number without leading zeros, '-' and one to four letters: users/33-A.
	HiLo int64 `json:"hilo"`
	// Identity counts IDs of a prefix and a number without leading zeros: users/7. The HiLo IDs of the older
	// generations, HiLo2 and HiLo2010, look the same.
	Identity int64 `json:"identity"`
	// ServerSide counts IDs of a prefix, 19 digits, '-' and one to four letters. A HiLo number above 1e18 looks
	// the same.
	ServerSide int64 `json:"serverSide"`
	// GUID counts IDs of the 36 characters of a UUID.
	GUID int64 `json:"guid"`
	// Semantic counts all other IDs.
	Semantic int64 `json:"semantic"`
}

// HiLoReport accounts for the numbers of one HiLo tag.
//
// Unused is Mark minus the number of documents that have one of these numbers. It is the sum of the six fields
// from InOpenLeases to Unaccounted. Each number counts in one field only: a number that is deleted, returned
// late or lost in this process does not count in an open lease.
//
// A document belongs to the tag if its ID is the tag, the database's separator, a number and any node tag. IDs
// without a node tag belong to the tag if no identity of the prefix exists, as under HiLo2. Ranges that were
// granted with another separator, or under a server prefix, are not recognized: their numbers count as Unused.
type HiLoReport struct {
	// Tag is the folded tag.
	Tag string `json:"tag"`
	// Document reports whether the document Raven/HiLo/<Tag> exists.
	Document bool `json:"document"`
	// Max is the highest number that the document marks as used, nil if it has no
	// number. For a document with a ServerHi it is computed with
	// Options.HiLoCapacity.
	Max *int64 `json:"max"`
	// ServerHi is the ServerHi of a document of HiLo2010, otherwise 0.
	ServerHi int64 `json:"serverHi,omitempty"`
	// Mark is the highest number granted and not returned, 0 if there is none. Mark prevents numbers from being
	// granted twice, whatever Max is.
	Mark int64 `json:"mark"`
	// Top is the greatest end of all ranges ever granted.
	Top int64 `json:"top"`
	// Highest is the highest number in use with this database's node tag, or, on a store that several processes
	// write to, with the tag of any of them. Under HiLo2 and HiLo2010, numbers without a node tag count, too.
	Highest int64 `json:"highest"`
	// OpenLeases counts the ranges that can still be returned. Exhausted ranges and ranges of crashed clients
	// are included for a while.
	OpenLeases int `json:"openLeases"`
	// Unused counts the numbers up to Mark that no document has.
	Unused int64 `json:"unused"`
	// InOpenLeases counts the numbers in open leases: a client may still use them, or has crashed.
	InOpenLeases int64 `json:"inOpenLeases"`
	// HeldInThisProcess counts numbers that clients of this process hold and have not drawn, and that are in no
	// open lease: clients of HiLo2 and HiLo2010 have blocks without leases.
	HeldInThisProcess int64 `json:"heldInThisProcess"`
	// LostInThisProcess counts numbers that this process has drawn since Open for writes that were refused. It
	// does not count a number that was skipped because its ID exists: a document has that number.
	LostInThisProcess int64 `json:"lostInThisProcess"`
	// ReturnedLate counts numbers of ranges that clients returned to this process, since Open, too late:
	// another range had been granted before, or the HiLo document was edited.
	ReturnedLate int64 `json:"returnedLate"`
	// Deleted counts the numbers of documents that were deleted or have expired, as far as that is recorded. It
	// is recorded at least if revisions of the document are kept, or if the deletion was among the last 1,000
	// changes. Other deletions count in InOpenLeases or Unaccounted.
	Deleted int64 `json:"deleted"`
	// Unaccounted counts all other numbers: numbers lost in crashes, by refused writes and late returns of
	// earlier processes, or by clients of HiLo2 and HiLo2010 that have ended, and numbers skipped by
	// RaiseCounters or an edited Max. Not all of them are necessarily lost: the disk does not show whether a
	// drawn number is yet to be used, or whether another client of an older generation, which writes the Max
	// itself, still holds it.
	Unaccounted int64 `json:"unaccounted"`
	// NeedsFloor is set in a copied database that is open under HiLo2 or HiLo2010, until RaiseCounters has set
	// the number from which counting is safe.
	NeedsFloor bool `json:"needsFloor"`
	// Forecast is that of Mark.
	Forecast
}

// Forecast estimates how long the numbers of a counter last.
type Forecast struct {
	// PerDay is the number of numbers used per day. It is nil if no number was used, or if no time has passed
	// by the clock.
	//
	// In a database older than 30 days, PerDay is the rate of the last 30 days, if documents show it: the
	// difference between the highest number of all and the highest number written before these 30 days. Deleted
	// or recently rewritten documents make the rate look higher, never lower. In a younger database, and for a
	// counter without recently used numbers, PerDay is the average since the database was created, over at
	// least one day. Imported numbers count as if they had been used in this database.
	PerDay *float64 `json:"perDay"`
	// Recent means that PerDay is the rate of the last 30 days.
	Recent bool `json:"recent"`
	// YearsLeft is the number of years for which the numbers up to 1<<63-1 last at that rate.
	YearsLeft *float64 `json:"yearsLeft"`
}

// EtagReport describes the counter of all writes.
type EtagReport struct {
	// Last is the number of the newest write.
	Last uint64 `json:"last"`
	// Forecast is that of Last.
	Forecast
}

// IdentityReport accounts for the numbers of one identity.
type IdentityReport struct {
	// Name is the folded request: "users|".
	Name string `json:"name"`
	// Last is the last used number.
	Last int64 `json:"last"`
	// Highest is the highest number in use, 0 if there is none. IDCounts.Identity
	// says which IDs count as identities.
	Highest int64 `json:"highest"`
	// Unused counts the numbers up to Last that no document has.
	Unused int64 `json:"unused"`
	// Deleted counts the numbers of Unused whose document was deleted or has expired, as far as that is
	// recorded. It is recorded at least if revisions of the document are kept, or if the deletion was among the
	// last 1,000 changes. The other numbers were used by NextIdentity, skipped, passed over by SeedIdentity, or
	// reserved when a process under Relaxed durability crashed.
	Deleted int64 `json:"deleted"`
	// Lost counts the numbers of Unused that this database has reserved from its cluster, and that no document
	// has got: the write was refused or cut short by a crash, the answer to the reservation came too late, the
	// number was skipped, or NextIdentity has drawn it. The number of a failed write counts until the next
	// write of this process gets it. In a cluster most other numbers of Unused belong to other nodes.
	Lost int64 `json:"lost,omitempty"`
	// NeedsFloor is set in a copied database until SeedIdentity has set the number from which counting is safe.
	NeedsFloor bool `json:"needsFloor"`
	// Forecast is that of Last.
	Forecast
}

// IDWarning is a finding about IDs that needs attention.
type IDWarning struct {
	// Kind is for programs.
	Kind IDWarningKind `json:"kind"`
	// Name is the affected prefix, tag or identity.
	Name string `json:"name"`
	// Text is for people: the finding, its consequence, and possible remedies.
	Text string `json:"text"`
}

// IDWarningKind is the kind of an IDWarning.
type IDWarningKind string

// The kinds of warnings.
const (
	// WarnAboveMark means that a HiLo number is in use that was not granted yet, for example because a program
	// wrote a document under this ID directly.
	WarnAboveMark IDWarningKind = inspect.WarnAboveMark
	// WarnAboveIdentity means that a number above the last number of the identity is in use.
	WarnAboveIdentity IDWarningKind = inspect.WarnAboveIdentity
	// WarnHiLoEdited means that the Max of a HiLo document differs from the mark.
	WarnHiLoEdited IDWarningKind = inspect.WarnHiLoEdited
	// WarnHiLoMissing means that numbers were granted, but the HiLo document does not exist.
	WarnHiLoMissing IDWarningKind = inspect.WarnHiLoMissing
	// WarnHiLoWithoutMax means that the Max of a HiLo document is missing or not a number.
	WarnHiLoWithoutMax IDWarningKind = inspect.WarnHiLoWithoutMax
	// WarnNeedsCapacity means that a document of HiLo2010 cannot be taken over
	// until Options.HiLoCapacity is set: ErrNeedsCapacity.
	WarnNeedsCapacity IDWarningKind = inspect.WarnNeedsCapacity
	// WarnNeedsFloor means that an identity of a copy waits for SeedIdentity,
	// or under HiLo2 and HiLo2010 a HiLo tag for RaiseCounters: ErrNeedsFloor.
	WarnNeedsFloor IDWarningKind = inspect.WarnNeedsFloor
	// WarnSharedPrefix means that documents of several collections have IDs with the same prefix.
	WarnSharedPrefix IDWarningKind = inspect.WarnSharedPrefix
	// WarnTooMany means that there are more than 10,000 prefixes, tags or
	// identities, and those not listed are not checked for other warnings; or more
	// than 1,048,576 deleted numbers, the rest of which count as unaccounted.
	WarnTooMany IDWarningKind = inspect.WarnTooMany
)

// InspectIDs examines the IDs of all documents and their counters, and reports how the IDs were made, which
// numbers are in use, and possible problems. It changes nothing. It reads a snapshot: every document's header,
// the records of all deletions, and the list of deleted documents that have revisions. It keeps at most 10,000
// prefixes, tags and identities each, and 1,048,576 numbers of deleted documents, in memory. InspectIDs calls
// progress, if not nil, now and then with the number of documents examined so far.
func (db *DB) InspectIDs(ctx context.Context, progress func(documents int64)) (IDReport, error) {
	r, err := inspect.Run(ctx, &db.core, progress)
	if err != nil {
		return IDReport{}, fmt.Errorf("inspect ids: %w", err)
	}
	return idReport(&r), nil
}

// idReport makes the public form of a report.
func idReport(r *inspect.Report) IDReport {
	out := IDReport{
		NodeTag: r.NodeTag, Documents: r.Documents, Expiring: r.Expiring, DeletedWithRevisions: r.DeletedWithRevisions,
		Prefixes:   make([]IDPrefix, len(r.Prefixes)),
		HiLo:       make([]HiLoReport, len(r.HiLo)),
		Identities: make([]IdentityReport, len(r.Identities)),
		Etags:      EtagReport{r.Etags.Last, Forecast(r.Etags.Forecast)},
		Warnings:   make([]IDWarning, len(r.Warnings)),
	}
	for i, p := range r.Prefixes {
		out.Prefixes[i] = IDPrefix{Prefix: p.Prefix, Collection: p.Collection, Rest: p.Rest, IDCounts: IDCounts(p.Counts), HighestHiLo: p.HighestHiLo, HighestIdentity: p.HighestIdentity}
	}
	for i, t := range r.HiLo {
		out.HiLo[i] = HiLoReport{
			Tag:               t.Tag,
			Document:          t.Document,
			Max:               t.Max,
			ServerHi:          t.ServerHi,
			Mark:              t.Mark,
			Top:               t.Top,
			Highest:           t.Highest,
			OpenLeases:        t.OpenLeases,
			Unused:            t.Unused,
			InOpenLeases:      t.InOpenLeases,
			HeldInThisProcess: t.HeldInThisProcess,
			LostInThisProcess: t.LostInThisProcess,
			ReturnedLate:      t.ReturnedLate,
			Deleted:           t.Deleted,
			Unaccounted:       t.Unaccounted,
			NeedsFloor:        t.NeedsFloor,
			Forecast:          Forecast(t.Forecast),
		}
	}
	for i, n := range r.Identities {
		out.Identities[i] = IdentityReport{Name: n.Name, Last: n.Last, Highest: n.Highest, Unused: n.Unused, Deleted: n.Deleted, Lost: n.Lost, NeedsFloor: n.NeedsFloor, Forecast: Forecast(n.Forecast)}
	}
	for i, w := range r.Warnings {
		out.Warnings[i] = IDWarning{IDWarningKind(w.Kind), w.Name, w.Text}
	}
	return out
}
