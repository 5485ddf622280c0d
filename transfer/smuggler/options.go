package smuggler

import (
	"io"
)

// Input is what an import reads.
type Input struct {
	Name   string    // in errors
	Reader io.Reader // the input, unpacked; nil for a format that needs a file
	Path   string    // of the file; "" if the input is none
	Comma  byte      // between the cells of CSV; see Comma

	// Again opens the input, unpacked, once more at its beginning. It is nil if the input
	// can be read only once.
	Again func() (io.ReadCloser, error)
}

// ImportOptions are options of an import.
type ImportOptions struct {
	// Collection is that of the documents that name none. A document with an @id and
	// without a collection belongs to @empty all the same, as an export wrote it.
	Collection string

	// Request is the ID to ask for, for documents that bring none, such as "users|". Nil
	// means the next HiLo ID of the collection.
	Request *string

	// IDPrefix is put in front of IDs of other systems, such as _id of Extended JSON.
	IDPrefix string

	// IDColumn is the column of CSV with the IDs.
	IDColumn string

	// Infer gives each column of CSV without a type the one that all its cells look like.
	Infer bool

	// Insert refuses a document whose ID is in use. Without it what is there is replaced.
	Insert bool

	// Revisions reads a dump twice, first its revisions, which RavenDB writes behind the
	// documents.
	Revisions bool

	// Rejects receives the records that are refused. If it is nil, the first one ends the
	// import. See SyncedRejects for an import that can be resumed.
	Rejects Rejects

	// Resume is the name under which the import notes how far it is; "" for none. See
	// Importer.Begin.
	Resume string

	// MaxBytes and MaxDepth are the limits of a record: its bytes, and how deeply it may be
	// nested. The defaults are 32 MiB and 256.
	MaxBytes, MaxDepth int

	// BatchBytes is about the size of a batch. The default is 4 MiB. An import holds four
	// times as much, and five with Ahead, beside its largest record.
	BatchBytes int

	// Ahead reads the next batch while one is stored, for inputs that come as fast as they
	// are read. The progress is known one batch later.
	Ahead bool

	// SpoolDir is the directory of a temporary file for contents of a dump that wait for
	// their document; the default is that of os.TempDir. MaxSpoolBytes bounds the file;
	// the default is no limit.
	SpoolDir      string
	MaxSpoolBytes int64

	// NoSettings leaves out what is a setting of the whole database: the configuration of
	// revisions, and subscriptions.
	NoSettings bool

	// Room is called before the import holds n bytes for its largest record, and Keep
	// before it holds n more bytes until its end. An error ends the import. The default is
	// not to count.
	Room, Keep func(n int64) error

	// Report is called with the progress whenever a batch or an attachment is stored or a
	// record rejected, by the goroutine that imports.
	Report func(ImportProgress)

	// Names are what the caller calls the options.
	Names Names
}

// Names are what callers call options of an import, for errors. The zero value names none.
type Names struct {
	MaxBytes, MaxDepth string // such as "--max-document-bytes"
	Place              string // what gives documents a place, such as "--collection or --id"
	Resume             string
}

// inBrackets returns a name behind a text.
func inBrackets(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// ImportProgress is what an import has done.
type ImportProgress struct {
	Documents   int64 // that are stored
	Bytes       int64 // of these, as they were read
	First, Last string
	Revisions   int64
	Attachments int64
	Rejected    int64

	// LeftOut counts what has no place in Jay, or was not to be imported, by its kind. Of
	// more than 32 kinds the others are counted as "others". LeftAttachments are those
	// whose document was stored, and had expired or was deleted before they were.
	LeftOut map[string]int64

	// LooksExtended is true if one of the first documents was JSON that looks like MongoDB's
	// Extended JSON.
	LooksExtended bool
}
