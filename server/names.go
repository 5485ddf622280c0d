package server

import (
	"fmt"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// CheckDatabaseName returns a jay.ErrUsage that states the rule if the name is invalid.
func CheckDatabaseName(name string) error {
	if _, err := serve.CheckName(name); err != nil {
		return fmt.Errorf("server: %w: %w", jay.ErrUsage, err)
	}
	return nil
}
