package storage

import (
	"fmt"
	"strings"
)

// FormatError is returned for data that a newer version of Jay has written, in a format that this
// version does not know. It is an ErrNewerFormat. Nothing was changed.
type FormatError struct {
	What   string // "database", or what else has a format number, such as "backup" or "export"
	Found  int    // the format that it has; 0 if it does not say
	Newest int    // the newest that this program reads

	// Features are the names of the used features that this program does not know, as far as the data
	// names them.
	Features []string
}

// Error names both formats, the features that are not known, and what to do.
func (e *FormatError) Error() string {
	found := fmt.Sprintf("it has format %d", e.Found)
	if e.Found == 0 {
		found = "its format is not known"
	}
	if names := e.names(); names != "" {
		found += ", as it uses " + names
	}
	return fmt.Sprintf("%v: %s, and this program reads the formats up to %d; nothing was changed: use the newer version of jay that wrote it, or go back to a backup from before the upgrade", e.what(), found, e.Newest)
}

// names returns the names of the features, quoted, and not more of them than a line holds: they come from a file.
func (e *FormatError) names() string {
	var quoted []string
	for _, name := range e.Features {
		if len(quoted) == 8 {
			return strings.Join(quoted, ", ") + " and others"
		}
		quoted = append(quoted, fmt.Sprintf("%.60q", name))
	}
	return strings.Join(quoted, ", ")
}

func (e *FormatError) what() string {
	if e.What == "" || e.What == "database" {
		return ErrNewerFormat.Error()
	}
	return e.What + " has a newer format"
}

// Unwrap returns ErrNewerFormat.
func (e *FormatError) Unwrap() error { return ErrNewerFormat }
