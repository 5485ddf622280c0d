package verify

import "slices"

// Kind is a kind of damage. Its text is part of what users see, and does not change.
type Kind string

// Damage to files and blocks.
const (
	FileMissing Kind = "file-missing"
	FileDamaged Kind = "file-damaged"
	Unreadable  Kind = "unreadable"
)

// Damage to keys and to the records that describe the database.
const (
	KeyUnknown        Kind = "key-unknown"
	KeyMalformed      Kind = "key-malformed"
	SettingsRecord    Kind = "settings-record"
	NodeRecord        Kind = "node-record"
	NodeMissing       Kind = "node-missing"
	CatalogRecord     Kind = "catalog-record"
	RevisionsConfig   Kind = "revisions-config"
	CountsState       Kind = "counts-state"
	TimesState        Kind = "times-state"
	BackupsRecord     Kind = "backups-record"
	StandbyRecord     Kind = "standby-record"
	RestoreUnfinished Kind = "restore-unfinished"
	ExchangeRecord    Kind = "exchange-record"
	RequestRecord     Kind = "request-record"
	ClusterRecord     Kind = "cluster-record"
	LeaseRecord       Kind = "lease-record"
	DefinitionRecord  Kind = "definition-record"
	RenameRecord      Kind = "rename-record"
	FloorRecord       Kind = "floor-record"
	FloorMissing      Kind = "floor-missing"
	FloorExtra        Kind = "floor-extra"
	EtagRecord        Kind = "etag-record"
	EtagBehind        Kind = "etag-behind"
	EtagForeign       Kind = "etag-foreign"
	DocumentRecord    Kind = "document-record"
	DocumentBody      Kind = "document-body"
	DocumentMetadata  Kind = "document-metadata"
	DocumentNumber    Kind = "document-number"
	DocumentID        Kind = "document-id"
	DocumentName      Kind = "document-collection"
	DocumentTimes     Kind = "document-times"
	DocumentList      Kind = "document-attachments"
	DocumentLost      Kind = "document-lost"
)

// Damage to what must agree with the documents.
const (
	ChangeRecord  Kind = "change-record"
	ChangeMissing Kind = "change-missing"
	ChangeWrong   Kind = "change-wrong"
	ChangeStale   Kind = "change-stale"
	TombstoneLive Kind = "tombstone-live"
	MemberMissing Kind = "member-missing"
	MemberExtra   Kind = "member-extra"
	MemberValue   Kind = "member-value"
	CountRecord   Kind = "count-record"
	CountWrong    Kind = "count-wrong"
	TimeRecord    Kind = "time-record"
	TimeMissing   Kind = "time-missing"
	TimeExtra     Kind = "time-extra"
	TimeWrong     Kind = "time-wrong"
	EntryMissing  Kind = "index-missing"
	EntryExtra    Kind = "index-extra"
	EntryWrong    Kind = "index-wrong"
	EntryTwice    Kind = "index-twice"
	EntryRecord   Kind = "index-record"
	IndexFlags    Kind = "index-flags"
	IndexLeftover Kind = "index-leftover"
	IndexNumber   Kind = "index-number"
)

// Damage to revisions.
const (
	RevisionRecord  Kind = "revision-record"
	RevisionGap     Kind = "revision-gap"
	RevisionOrder   Kind = "revision-order"
	HistoryRecord   Kind = "history-record"
	HistoryWrong    Kind = "history-wrong"
	DeletedMissing  Kind = "deleted-missing"
	DeletedExtra    Kind = "deleted-extra"
	RevisionCount   Kind = "revision-count"
	RevisionCounter Kind = "revision-count-record"
)

// Damage to attachments.
const (
	ContentRecord   Kind = "content-record"
	ContentMissing  Kind = "content-missing"
	ReferencesHigh  Kind = "references-high"
	ReferencesLow   Kind = "references-low"
	ContentUnused   Kind = "content-unused"
	ChunkMissing    Kind = "chunk-missing"
	ChunkChanged    Kind = "chunk-changed"
	ChunkExtra      Kind = "chunk-extra"
	StreamRecord    Kind = "stream-record"
	StreamShared    Kind = "stream-shared"
	StreamNumber    Kind = "stream-number"
	AttachmentSize  Kind = "attachment-size"
	AttachmentOrder Kind = "attachment-order"
)

// Damage to counters and subscriptions.
const (
	IdentityRecord     Kind = "identity-record"
	IdentityBehind     Kind = "identity-behind"
	HiLoRecord         Kind = "hilo-record"
	HiLoBehind         Kind = "hilo-behind"
	HiLoLeases         Kind = "hilo-leases"
	ServerSideAhead    Kind = "server-side-ahead"
	SubscriptionRecord Kind = "subscription-record"
	SubscriptionHalf   Kind = "subscription-half"
	SubscriptionExtra  Kind = "subscription-extra"
	SubscriptionAhead  Kind = "subscription-ahead"
)

// Meaning is what a kind means to a user.
type Meaning struct {
	Loss    string // what is lost
	Remedy  string // what to do
	Warning bool   // nothing is known to be wrong: an application may have made it
}

// The remedies.
const (
	rebuild   = "nothing that was stored is lost; jay repair rebuilds it in a new directory"
	restore   = "restore a backup, or write it again; jay repair saves the rest into a new directory"
	harmless  = "nothing; jay repair leaves it out"
	salvage   = "restore a backup; jay repair saves what is left into a new directory"
	raiseHiLo = "raise the counter with jay hilo raise, unless the document was stored under an ID of your own"
)

// meanings has an entry for each kind.
var meanings = map[Kind]Meaning{
	FileMissing: {"what is in the file", salvage, false},
	FileDamaged: {"what is in the damaged block or record", salvage, false},
	Unreadable:  {"the records in this range", salvage, false},

	KeyUnknown:        {"nothing, if a newer version wrote it", "open the database with the version that wrote it; this one keeps it, and puts it into backups", true},
	KeyMalformed:      {"what the record said", harmless, false},
	SettingsRecord:    {"the settings of the database: it does not open", salvage, false},
	NodeRecord:        {"which database a node number means: the change vectors of its documents", salvage, false},
	NodeMissing:       {"which database a node number means: the change vectors of its documents", salvage, false},
	CatalogRecord:     {"which indexes there are: the database does not open", "jay repair leaves the indexes out; declare them again", false},
	RevisionsConfig:   {"of which collections revisions are kept: the database does not open", "jay repair leaves it out; configure revisions again", false},
	CountsState:       {"nothing", rebuild, false},
	TimesState:        {"nothing", rebuild, false},
	StandbyRecord:     {"which database a standby follows, and how far it has come", "make a new standby", false},
	BackupsRecord:     {"which backups an incremental one can follow", "make a full backup", false},
	RestoreUnfinished: {"what the restore has not come to: the database does not open", "restore again, into a new directory", false},
	RequestRecord:     {"results of calls with a request ID, which repeated calls would be answered with", "jay repair leaves them behind", false},
	ExchangeRecord:    {"the compare-exchange value", restore, false},
	DefinitionRecord:  {"the definition, such as an index that a client of a server has defined", "define it again; jay repair leaves it out", false},
	ClusterRecord:     {"of which cluster the database is a member, why numbers of an identity have no document, or documents of a cluster-wide transaction that is not decided", salvage, false},
	LeaseRecord:       {"which process has a node tag, or does a work in the background", "close the database in all processes, and open it again", false},
	RenameRecord:      {"how far the renaming of a collection was", "call RenameCollection again", false},
	FloorRecord:       {"which records of deletions are still needed", rebuild, false},
	FloorMissing:      {"deletions that the subscription has not seen may be forgotten", rebuild, false},
	FloorExtra:        {"nothing; records of deletions are kept for no one", rebuild, false},
	EtagRecord:        {"which etags are used: the database does not open", rebuild, false},
	EtagBehind:        {"the promise that no etag, and no ID made of one, comes twice", "stop writing; jay repair raises the counters above all numbers in use", false},
	EtagForeign:       {"the place of the document in the order of changes", rebuild, false},

	DocumentRecord:   {"the document", restore, false},
	DocumentBody:     {"the document, or a part of it", restore, false},
	DocumentMetadata: {"the custom metadata of the document", restore, false},
	DocumentNumber:   {"nothing: an older version stored the number by a patch, and no other write would", "write the document with a number in the bounds; until then no Put stores it as it is", true},
	DocumentID:       {"the ID as it was written", restore, false},
	DocumentName:     {"the collection of the document", restore, false},
	DocumentTimes:    {"when the document expires or is refreshed", rebuild, false},
	DocumentList:     {"which attachments the document has", restore, false},
	DocumentLost:     {"the document", restore, false},

	ChangeRecord:  {"nothing, if the document is there", rebuild, false},
	ChangeMissing: {"nothing; change feeds do not show the document", rebuild, false},
	ChangeWrong:   {"nothing; change feeds show another document", rebuild, false},
	ChangeStale:   {"nothing; change feeds show the document twice", rebuild, false},
	TombstoneLive: {"nothing, or a deletion: the document may be an older version of one that was deleted", "look at the document; delete it or write it again", false},
	MemberMissing: {"nothing; scans of the collection do not find the document", rebuild, false},
	MemberExtra:   {"nothing", rebuild, false},
	MemberValue:   {"nothing", rebuild, false},
	CountRecord:   {"nothing", rebuild, false},
	CountWrong:    {"nothing; counts are wrong", rebuild, false},
	TimeRecord:    {"nothing", rebuild, false},
	TimeMissing:   {"nothing; the document does not expire, or is not refreshed", rebuild, false},
	TimeExtra:     {"nothing", rebuild, false},
	TimeWrong:     {"nothing", rebuild, false},
	EntryMissing:  {"nothing; queries do not find the document", "drop the index and declare it again", false},
	EntryExtra:    {"nothing; queries may find what is not there", "drop the index and declare it again", false},
	EntryWrong:    {"nothing; queries may answer wrongly", "drop the index and declare it again", false},
	EntryTwice:    {"nothing; two documents have a value of which there may be one", "change one of them", false},
	EntryRecord:   {"nothing", "drop the index and declare it again", false},
	IndexFlags:    {"nothing; queries may answer wrongly", "drop the index and declare it again", false},
	IndexLeftover: {"nothing", harmless, false},
	IndexNumber:   {"nothing; a new index may take the entries of an old one for its own", rebuild, false},

	RevisionRecord:  {"the revision", salvage, false},
	RevisionGap:     {"the revisions that are missing", salvage, false},
	RevisionOrder:   {"the order of the revisions", rebuild, false},
	HistoryRecord:   {"nothing", rebuild, false},
	HistoryWrong:    {"the revisions that are missing, if any", rebuild, false},
	DeletedMissing:  {"nothing; the document is not listed as deleted", rebuild, false},
	DeletedExtra:    {"the revisions of the document, if it had any", rebuild, false},
	RevisionCount:   {"nothing; the numbers of revisions are wrong", rebuild, false},
	RevisionCounter: {"nothing", rebuild, false},

	ContentRecord:   {"the attachments with this content", restore, false},
	ContentMissing:  {"the attachments with this content", restore, false},
	ReferencesHigh:  {"nothing; the content stays when its last attachment goes", rebuild, false},
	ReferencesLow:   {"nothing yet; the content goes before its last attachment", rebuild, false},
	ContentUnused:   {"nothing; the space is not freed", rebuild, false},
	ChunkMissing:    {"the attachments with this content", restore, false},
	ChunkChanged:    {"the attachments with this content", restore, false},
	ChunkExtra:      {"nothing; the space is not freed", rebuild, false},
	StreamRecord:    {"nothing", rebuild, false},
	StreamShared:    {"nothing yet; the chunks of the content are about to be removed", rebuild, false},
	StreamNumber:    {"nothing yet; a new attachment may overwrite an old one", rebuild, false},
	AttachmentSize:  {"the size of the attachment", restore, false},
	AttachmentOrder: {"nothing; attachments may not be found by their names", restore, false},

	IdentityRecord:     {"the last number of the identity", salvage, false},
	IdentityBehind:     {"nothing: a number in use is passed over; but if the counter was higher, numbers of deleted documents come again", "raise the identity with jay ids seed, unless the document was stored under an ID of your own", true},
	HiLoRecord:         {"which numbers of the tag are granted", salvage, false},
	HiLoBehind:         {"nothing: a number in use is passed over; but if the counter was higher, numbers of deleted documents come again", raiseHiLo, true},
	HiLoLeases:         {"which ranges of the tag can be given back", rebuild, false},
	ServerSideAhead:    {"nothing: an ID in use is passed over; but if etags were higher, IDs of deleted documents come again", "raise the etag with RaiseCounters, unless the document was stored under an ID of your own", true},
	SubscriptionRecord: {"the definition or the position of the subscription", "drop the subscription and create it again", false},
	SubscriptionHalf:   {"the definition or the position of the subscription", "drop the subscription and create it again", false},
	SubscriptionExtra:  {"nothing", harmless, false},
	SubscriptionAhead:  {"changes that the subscription will not see", "reset the subscription", false},
}

// Meaning returns what the kind means.
func (k Kind) Meaning() Meaning { return meanings[k] }

// IsWarning reports whether the kind is a warning.
func (k Kind) IsWarning() bool { return meanings[k].Warning }

// Kinds returns all kinds, sorted.
func Kinds() []Kind {
	all := make([]Kind, 0, len(meanings))
	for k := range meanings {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
