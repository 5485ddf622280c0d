package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/inspect"
)

// IDReport is the result of InspectIDs: the IDs of a database, all at one moment.
type IDReport struct {
	// NodeTag is the tag that this database's own HiLo and server-side IDs
	// carry.
	NodeTag string `json:"nodeTag"`
	// Documents counts all documents.
	Documents int64 `json:"documents"`
	// Expiring counts those of them that have an instant at which they expire. Their
	// numbers are used until they are deleted, and count as deleted then.
	Expiring int64 `json:"expiring,omitempty"`
	// DeletedWithRevisions counts documents that were deleted and of which revisions are
	// kept. A document that takes such an ID again goes on with their history.
	DeletedWithRevisions int64 `json:"deletedWithRevisions,omitempty"`
	// Prefixes are sorted by prefix and collection. There are at most 10,000; the
	// last entry stands for all that come later in the order of IDs.
	Prefixes []IDPrefix `json:"prefixes"`
	// HiLo are the HiLo tags that have granted numbers here or that have a
	// document, sorted, at most 10,000.
	HiLo []HiLoReport `json:"hilo"`
	// Identities are sorted by name, at most 10,000.
	Identities []IdentityReport `json:"identities"`
	// Etags are what server-side IDs are made of.
	Etags EtagReport `json:"etags"`
	// Warnings are findings that deserve attention. None of them means that an ID
	// can be made twice.
	Warnings []IDWarning `json:"warnings"`
}

// IDPrefix counts the documents of one collection whose IDs begin alike.
type IDPrefix struct {
	// Prefix is the part of the ID up to and including its last separator,
	// folded as the database folds IDs; "" for documents whose ID has none. A
	// node tag at the end of an ID belongs to the number before it, even with
	// the separator "-".
	Prefix string `json:"prefix"`
	// Collection is in the case that was met first.
	Collection string `json:"collection"`
	// Rest marks the entry that stands for all that are not listed individually.
	// Its Prefix and Collection are "".
	Rest bool `json:"rest,omitempty"`
	// IDCounts are their numbers by strategy.
	IDCounts
	// HighestHiLo is the highest number of a HiLo ID with this database's node
	// tag, 0 if there is none. On a store that several processes write to, their tags count, too, also
	// those of processes that have ended.
	HighestHiLo int64 `json:"highestHiLo"`
	// HighestIdentity is the highest number of an identity ID, 0 if there is
	// none.
	HighestIdentity int64 `json:"highestIdentity"`
}

// IDCounts counts documents by the strategy that their IDs suggest. The strategy
// itself is not stored: users/7 may also have been written by hand.
type IDCounts struct {
	// Documents is the sum of the others.
	Documents int64 `json:"documents"`
	// HiLo counts a prefix, a number without leading zeros, '-' and one to
	// four letters: users/33-A.
	HiLo int64 `json:"hilo"`
	// Identity counts a prefix and a number without leading zeros: users/7.
	// The HiLo IDs of the older generations, HiLo2 and HiLo2010, look the same.
	Identity int64 `json:"identity"`
	// ServerSide counts a prefix, 19 digits, '-' and one to four letters. A
	// HiLo number above 1e18 looks the same.
	ServerSide int64 `json:"serverSide"`
	// GUID counts the 36 characters of a UUID.
	GUID int64 `json:"guid"`
	// Semantic counts all others.
	Semantic int64 `json:"semantic"`
}

// HiLoReport accounts for the numbers of one HiLo tag.
//
// Unused is Mark minus the documents that have one of these numbers. It is the sum
// of the six fields from InOpenLeases to Unaccounted. Each number counts in one
// field only: one that is deleted, returned late or lost here does not count in an
// open lease.
//
// A document belongs to the tag if its ID is the tag, the database's separator, a
// number and any node tag. IDs without a node tag belong to it if no identity of
// the prefix exists, as under HiLo2. Ranges that were granted with another
// separator, or under a server prefix, are not recognized: their numbers are in
// Unused.
type HiLoReport struct {
	// Tag is folded.
	Tag string `json:"tag"`
	// Document reports whether there is a document Raven/HiLo/<Tag>.
	Document bool `json:"document"`
	// Max is the highest number that the document marks as used, nil if it has no
	// number. For a document with a ServerHi it is computed with
	// Options.HiLoCapacity.
	Max *int64 `json:"max"`
	// ServerHi is the ServerHi of a document of HiLo2010, otherwise 0.
	ServerHi int64 `json:"serverHi,omitempty"`
	// Mark is the highest number granted and not returned, 0 if there is none. It
	// prevents numbers from being granted twice, whatever Max is.
	Mark int64 `json:"mark"`
	// Top is the greatest end of all ranges ever granted.
	Top int64 `json:"top"`
	// Highest is the highest number in use with this database's node tag, or on a store that several processes
	// write to, with that of any of them;
	// under HiLo2 and HiLo2010, without a node tag, too.
	Highest int64 `json:"highest"`
	// OpenLeases counts the ranges that can still be returned. Exhausted ranges and
	// those of crashed clients stay among them for a while.
	OpenLeases int `json:"openLeases"`
	// Unused counts the numbers up to Mark that no document has.
	Unused int64 `json:"unused"`
	// InOpenLeases are the numbers in open leases: a client may still use them, or
	// it crashed.
	InOpenLeases int64 `json:"inOpenLeases"`
	// HeldInThisProcess are numbers that clients of this process hold and have not
	// drawn, without an open lease: clients of HiLo2 and HiLo2010, whose blocks
	// have none.
	HeldInThisProcess int64 `json:"heldInThisProcess"`
	// LostInThisProcess are numbers that this process has drawn since Open for
	// writes that were refused. A number that was skipped because its ID exists is
	// not among them: a document has it.
	LostInThisProcess int64 `json:"lostInThisProcess"`
	// ReturnedLate are numbers of ranges that came back to this process, since
	// Open, too late to be accepted: another range had been granted meanwhile, or
	// the document was edited.
	ReturnedLate int64 `json:"returnedLate"`
	// Deleted are those of documents that were deleted or have expired, as far as that is
	// recorded: at least if revisions of the document are kept, or the deletion was among
	// the last 1,000 changes. Another one counts in InOpenLeases or Unaccounted.
	Deleted int64 `json:"deleted"`
	// Unaccounted are the others: lost in crashes, by refused writes and late
	// returns of earlier processes, by clients of HiLo2 and HiLo2010 that have
	// ended, or skipped by RaiseCounters or an edited Max. Not all of them need be
	// lost: the disk does not show whether a number was drawn and is yet to be
	// used, or whether a client of an older generation elsewhere, which writes the
	// Max itself, still has it.
	Unaccounted int64 `json:"unaccounted"`
	// NeedsFloor is set in a copied database that is open under HiLo2 or HiLo2010,
	// until RaiseCounters has set the number from which it is safe to count.
	NeedsFloor bool `json:"needsFloor"`
	// Forecast is that of Mark.
	Forecast
}

// Forecast estimates how long the numbers of a counter last.
type Forecast struct {
	// PerDay is how many numbers are used per day. It is nil if none was used, or
	// if no time has passed by the clock.
	//
	// In a database older than 30 days it is the rate of the last 30, if documents
	// show it: from the highest number written before that time to the highest of
	// all. Deleted documents, or ones that were rewritten lately, make it look
	// faster, never slower. In a younger database, and for a counter of which no
	// number was used lately, it is the average since the database was created,
	// over at least one day. Imported numbers count as if they had been used here.
	PerDay *float64 `json:"perDay"`
	// Recent means that PerDay is the rate of the last 30 days.
	Recent bool `json:"recent"`
	// YearsLeft is how long the numbers up to 1<<63-1 last at that rate.
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
	// Deleted are those of Unused whose document was deleted or has expired, as far as
	// that is recorded: at least if revisions of it are kept, or if that was among the last
	// 1,000 changes. The others were used
	// by NextIdentity, skipped, seeded away, or reserved when a process under
	// Relaxed durability crashed.
	Deleted int64 `json:"deleted"`
	// Lost are those of Unused that this database has reserved from its cluster, and that no
	// document has got: the write was refused or cut short by a crash, the answer to the
	// reservation came too late, the number was passed over, or NextIdentity has drawn it.
	// A number whose write has failed counts until the next write of this process gets it.
	// In a cluster most others belong to other nodes.
	Lost int64 `json:"lost,omitempty"`
	// NeedsFloor is set in a copied database until SeedIdentity has set the number
	// from which it is safe to count.
	NeedsFloor bool `json:"needsFloor"`
	// Forecast is that of Last.
	Forecast
}

// IDWarning is a finding about IDs that deserves attention.
type IDWarning struct {
	// Kind is for programs.
	Kind IDWarningKind `json:"kind"`
	// Name is the prefix, tag or identity that it is about.
	Name string `json:"name"`
	// Text is for people: the finding, its consequence, and what can be done.
	Text string `json:"text"`
}

// IDWarningKind says what an IDWarning is about.
type IDWarningKind string

// The kinds of warnings.
const (
	// WarnAboveMark means that a HiLo number is in use that was not granted yet,
	// for example because a document was written by hand.
	WarnAboveMark IDWarningKind = inspect.WarnAboveMark
	// WarnAboveIdentity means that a number above that of the identity is in
	// use.
	WarnAboveIdentity IDWarningKind = inspect.WarnAboveIdentity
	// WarnHiLoEdited means that the Max of a HiLo document is not the mark.
	WarnHiLoEdited IDWarningKind = inspect.WarnHiLoEdited
	// WarnHiLoMissing means that numbers were granted, but the HiLo document
	// is not there.
	WarnHiLoMissing IDWarningKind = inspect.WarnHiLoMissing
	// WarnHiLoWithoutMax means that the Max of a HiLo document is missing or
	// no number.
	WarnHiLoWithoutMax IDWarningKind = inspect.WarnHiLoWithoutMax
	// WarnNeedsCapacity means that a document of HiLo2010 cannot be taken over
	// until Options.HiLoCapacity is set: ErrNeedsCapacity.
	WarnNeedsCapacity IDWarningKind = inspect.WarnNeedsCapacity
	// WarnNeedsFloor means that an identity of a copy waits for SeedIdentity,
	// or under HiLo2 and HiLo2010 a HiLo tag for RaiseCounters: ErrNeedsFloor.
	WarnNeedsFloor IDWarningKind = inspect.WarnNeedsFloor
	// WarnSharedPrefix means that documents of several collections have IDs
	// with one prefix.
	WarnSharedPrefix IDWarningKind = inspect.WarnSharedPrefix
	// WarnTooMany means that there are more than 10,000 prefixes, tags or
	// identities, and those not listed are not checked for other warnings; or more
	// than 1,048,576 deleted numbers, the rest of which count as unaccounted.
	WarnTooMany IDWarningKind = inspect.WarnTooMany
)

// InspectIDs examines the IDs of all documents and the counters behind them, and
// reports how the IDs were made, which numbers are used, and what looks wrong. It
// changes nothing. It reads every document's header, the records of all deletes, and the
// list of deleted documents that have revisions, as they were when the call began, and keeps at most 10,000 prefixes, tags and
// identities each, and 1,048,576 numbers of deleted documents. progress, if not
// nil, is called now and then with the number of documents seen so far.
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
