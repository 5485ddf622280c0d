package storage

import "context"

// FileChecker is an [Engine] that can check its files while it is in use. An engine
// whose files are not its own need not be one.
type FileChecker interface {
	// Files returns the files that hold what is committed, as they are now.
	Files() ([]File, error)

	// CheckFile reads a file of Files, and returns what is wrong with it: nothing for a
	// file that is not needed any more. It calls pace with the number of bytes that it is about to
	// read; an error of pace ends it, and is returned. Other errors are those of a file
	// system that fails.
	CheckFile(ctx context.Context, f File, pace func(bytes int) error) ([]*DamageError, error)
}

// File is a file of an engine.
type File struct {
	Name  string
	Bytes int64
}
