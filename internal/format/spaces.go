package format

import "fmt"

// Space is what a package must know of a key space if it looks at a database as a whole: for
// backups, checks, repairs, copies under a new node tag, and figures of the disk.
//
// Who adds a key space adds a row to Spaces, and answers each column. Then
//
//	go test -run TestSpaces ./internal/...
//
// names each package that needs code for the space, and that has none.
type Space struct {
	First  byte       // the first byte of its keys
	Name   string     // of what its keys hold, in the plural, for people
	Owner  string     // the package below internal that decides what is in it
	Origin Provenance // where its records come from, and so what a repair does with them
	Backup BackupWay
	Values ValueSize
	Retag  RetagEffect
	Disk   DiskHeading
}

// String names a space and its owner, for messages.
func (s Space) String() string {
	return fmt.Sprintf("key space %q (%s, of internal/%s)", s.First, s.Name, s.Owner)
}

// Provenance says where the records of a space come from.
type Provenance int

// A repair copies what is Original, as far as it is whole. What is Derived is made anew, by the
// repair or by the Open that follows it, from what is Original. What is Transient is left out.
const (
	Original  Provenance = iota + 1 // something in it is stored nowhere else
	Derived                         // all of it follows from other spaces
	Transient                       // it is stored nowhere else, and is of use for a while only
)

// BackupWay says what backups carry of a space.
type BackupWay int

// A key of no space that is known is carried as CarriedWhole.
const (
	CarriedWhole     BackupWay = iota + 1 // all of it, in each backup
	CarriedSinceBase                      // an incremental backup has what has changed since its base: see Source.since of package backup
	FollowsDocuments                      // a full backup has all of it; of an incremental one the reader derives it from the documents
	NotCarried                            // none of it: who restores a backup builds what is Derived, and needs nothing that is Transient
)

// ValueSize says how long the values of a space can be.
type ValueSize int

// The reader of a backup refuses longer values. package backup has both bounds.
const (
	ShortValues    ValueSize = iota + 1
	DocumentValues           // a value can hold a document
)

// RetagEffect says whether a space changes when a copy of a database gets a node tag of its own.
type RetagEffect int

// Package settings has the changes.
const (
	KeptByRetag RetagEffect = iota + 1
	ChangedByRetag
)

// DiskHeading says under which figure of jay.DiskUsage a space is added up.
type DiskHeading int

// The headings are named after the fields of jay.DiskUsage.
const (
	DiskDocuments   DiskHeading = iota + 1 // of the collection with whose name and separator the ID begins, or OtherDocuments
	DiskCollections                        // of the collection whose folded name and 00 begin the rest of the key
	DiskIndexes                            // of the index whose number, 4 bytes, begins the rest of the key
	DiskRevisions
	DiskAttachments
	DiskChanges
	DiskOther
)

// Spaces are all key spaces, in the order of their keys. The rows name no fields, so that a
// row without an answer does not compile.
var Spaces = [...]Space{
	{SpaceAttachments, "contents of attachments", "attachments", Original, CarriedWhole, ShortValues, KeptByRetag, DiskAttachments},
	{SpaceChunks, "chunks of attachments", "attachments", Original, CarriedSinceBase, ShortValues, KeptByRetag, DiskAttachments},
	{SpaceMembers, "entries of collections", "write", Derived, FollowsDocuments, ShortValues, KeptByRetag, DiskCollections},
	{SpaceDocument, "documents", "write", Original, CarriedSinceBase, DocumentValues, KeptByRetag, DiskDocuments},
	{SpaceChanges, "records of changes", "write", Original, CarriedSinceBase, ShortValues, KeptByRetag, DiskChanges},
	{SpaceDefinitions, "definitions", "definitions", Original, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceHiLo, "HiLo tags", "counters", Original, CarriedWhole, ShortValues, ChangedByRetag, DiskOther},
	{SpaceIdentity, "identities", "counters", Original, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceCounts, "counts", "counts", Derived, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceMeta, "settings", "settings", Original, CarriedWhole, ShortValues, ChangedByRetag, DiskOther},
	{SpaceNode, "nodes", "settings", Original, CarriedWhole, ShortValues, ChangedByRetag, DiskOther},
	{SpaceCluster, "lost numbers and intents", "accord", Original, CarriedWhole, DocumentValues, KeptByRetag, DiskOther},
	{SpaceRequests, "results of requests", "requests", Transient, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceRevisions, "revisions", "revisions", Original, CarriedSinceBase, DocumentValues, KeptByRetag, DiskRevisions},
	{SpaceSubscription, "subscriptions", "subs", Original, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceTimes, "entries of what is due", "expiry", Derived, FollowsDocuments, ShortValues, KeptByRetag, DiskOther},
	{SpaceExchange, "compare-exchange values", "exchange", Original, CarriedWhole, ShortValues, KeptByRetag, DiskOther},
	{SpaceIndex, "entries of indexes", "catalog", Derived, NotCarried, ShortValues, KeptByRetag, DiskIndexes},
	{SpaceIndexState, "states of indexes", "indexer", Derived, NotCarried, ShortValues, KeptByRetag, DiskOther},
	{SpaceLeases, "leases", "leases", Transient, NotCarried, ShortValues, KeptByRetag, DiskOther},
}
