package env

import (
	"fmt"
	"time"
)

// Clock returns the time by the user's clock, for background work: a panic of the clock,
// which has no caller to reach, is an error.
func (e *Env) Clock() (now time.Time, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("Options.Now panicked: %v", value)
		}
	}()
	return e.Now(), nil
}
