//go:build !unix

package stats

import (
	"errors"
	"time"
)

// CPUTime returns ErrUnsupported: here the time is not measured.
func CPUTime() (time.Duration, error) { return 0, errors.ErrUnsupported }
