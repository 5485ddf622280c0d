package storage

import "context"

// FileChecker is an [Engine] that can check its files while it is in use. An Engine that does not
// own its files need not be one.
type FileChecker interface {
	// Files returns the files that hold the committed data, as they are now.
	Files() ([]File, error)

	// CheckFile reads a file of Files, and returns its damage. It returns none for a file that is no
	// longer needed. CheckFile calls pace with the number of bytes that it is about to read. An error
	// of pace ends CheckFile, which returns it. Other errors are errors of the file system.
	CheckFile(ctx context.Context, f File, pace func(bytes int) error) ([]*DamageError, error)
}

// File is a file of an engine.
type File struct {
	Name  string
	Bytes int64
}
