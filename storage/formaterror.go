package storage

import "fmt"

// FormatError is the error of something that a newer version of Jay wrote, in a format
// that this one does not know. It is an ErrNewerFormat. Nothing was changed.
type FormatError struct {
	What   string // "database", or what else has a format number, such as "backup" or "export"
	Found  int    // the format that it has; 0 if it does not say
	Newest int    // the newest that this program reads
}

// Error names both formats, and what to do.
func (e *FormatError) Error() string {
	found := fmt.Sprintf("it has format %d", e.Found)
	if e.Found == 0 {
		found = "its format is not known"
	}
	return fmt.Sprintf("%v: %s, and this program reads the formats up to %d; nothing was changed: use the newer version of jay that wrote it, or go back to a backup from before the upgrade", e.what(), found, e.Newest)
}

func (e *FormatError) what() string {
	if e.What == "" || e.What == "database" {
		return ErrNewerFormat.Error()
	}
	return e.What + " has a newer format"
}

// Unwrap returns ErrNewerFormat.
func (e *FormatError) Unwrap() error { return ErrNewerFormat }
