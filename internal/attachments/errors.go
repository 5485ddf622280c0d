package attachments

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
)

// Named adds the name of the attachment to an error.
func Named(name string, err error) error {
	var named *metadata.AttachmentError
	if err == nil || errors.As(err, &named) && named.Name == name {
		return err
	}
	return fmt.Errorf("attachment %q: %w", errs.Shorten(name), err)
}

// WithNames puts the names into an *AttachmentError of an upload.
func WithNames(err error, id, name string) error {
	var nameless *metadata.AttachmentError
	if errors.As(err, &nameless) && nameless.Name == "" {
		named := *nameless
		named.ID, named.Name = id, name
		return &named
	}
	return err
}
