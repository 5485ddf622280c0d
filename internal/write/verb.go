package write

// Verb is what a write does with the document that is there already. Its methods say what
// the steps of a write have to know of a verb, so that none of them needs a list of verbs.
//
// The numbers are hashed into the results of calls with a request ID: see hashAsked.
// Part of the on-disk format. Must not change.
type Verb uint8

const (
	Put     Verb = iota // write it, whatever is there
	Insert              // it must not be there
	Replace             // it must be there
	Delete
	Patch
	Keep     // make the version that is there a revision
	Attach   // write it as it is, with other attachments
	Exchange // change a compare-exchange value

	verbCount // how many there are
)

// verbs has a row for each verb. A new one is a row here, a case of Writer.Prepare and one
// of Txn.stage. A row without an answer does not compile.
var verbs = [...]traits{
	Put:      {"put", "put", wholeBody, anyDocument, anyRequest},
	Insert:   {"insert", "insert", wholeBody, noDocument, anyRequest},
	Replace:  {"replace", "replace", wholeBody, oneDocument, idOnly},
	Delete:   {"delete", "delete", deletedBody, asStaged, literally},
	Patch:    {"patch", "patch", editedBody, asStaged, idOnly},
	Keep:     {"keep a revision of", "revise", sameVersion, asStaged, literally},
	Attach:   {"attach to", "attach", sameBody, asStaged, idOnly},
	Exchange: {"compare exchange", "compare exchange", noBody, asStaged, literally},
}

// A verb without a row does not compile.
var _ = [1]struct{}{}[len(verbs)-int(verbCount)]

// traits are what the steps of a write have to know of a verb.
type traits struct {
	name      string // in errors
	operation string // for observers
	body      bodyTrait
	document  documentTrait
	request   requestTrait
}

// bodyTrait is what becomes of the body. The zero one is no answer.
type bodyTrait uint8

const (
	wholeBody   bodyTrait = iota + 1 // the op has the new one
	editedBody                       // the new one is made of that which is there
	sameBody                         // the new version has it, too
	sameVersion                      // there is no new version
	deletedBody                      // it goes with its document
	noBody                           // no document is written
)

// documentTrait is what a put expects to find. The zero one is no answer.
type documentTrait uint8

const (
	anyDocument documentTrait = iota + 1
	noDocument
	oneDocument
	asStaged // no put: its own staging decides
)

// requestTrait is what the ID that the caller gives may be. The zero one is no answer.
type requestTrait uint8

const (
	anyRequest requestTrait = iota + 1 // an ID, or a request for one
	idOnly                             // an ID: a request for one is refused
	literally                          // an ID, also if it looks like a request
)

// String returns what the verb does, for errors.
func (v Verb) String() string { return verbs[v].name }

// Operation returns the name under which observers see the verb.
func (v Verb) Operation() string { return verbs[v].operation }

// GivesBody reports whether the op has the whole body of the new version: it is a put of
// some kind, and its body, collection and index entries are prepared before the
// transaction.
func (v Verb) GivesBody() bool { return verbs[v].body == wholeBody }

// Edits reports whether the body of the new version is made of the one that is there.
func (v Verb) Edits() bool { return verbs[v].body == editedBody }

// KeepsBody reports whether the new version has the body that is there, and only its
// attachments change.
func (v Verb) KeepsBody() bool { return verbs[v].body == sameBody }

// KeepsVersion reports whether the document stays in the version that is there.
func (v Verb) KeepsVersion() bool { return verbs[v].body == sameVersion }

// Deletes reports whether there is no document afterwards.
func (v Verb) Deletes() bool { return verbs[v].body == deletedBody }

// Overwrites reports whether what is written does not depend on the version that is there:
// that is put whole, or deleted.
func (v Verb) Overwrites() bool { return v.GivesBody() || v.Deletes() }

// MustBeNew reports whether a put is refused if the document is there.
func (v Verb) MustBeNew() bool { return verbs[v].document == noDocument }

// MustExist reports whether a put is refused if the document is not there.
func (v Verb) MustExist() bool { return verbs[v].document == oneDocument }

// NeedsID reports whether a request for an ID that is made is refused.
func (v Verb) NeedsID() bool { return verbs[v].request == idOnly }

// IsLiteral reports whether the ID is looked up as it is, also if it looks like a request.
func (v Verb) IsLiteral() bool { return verbs[v].request == literally }
