package revisions

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// CheckStored returns an error for a record of the configuration that Open would refuse.
func CheckStored(record []byte) error {
	var stored Config
	if err := json.Unmarshal(record, &stored); err != nil {
		return fmt.Errorf("record of the revisions: %w: %w", errs.ErrCorrupt, err)
	}
	if _, err := newRules(stored); err != nil {
		return fmt.Errorf("record of the revisions: %w: %w", errs.ErrCorrupt, err)
	}
	return nil
}
