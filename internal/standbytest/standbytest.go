// Package standbytest has what several rooms need to test standbys.
package standbytest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/jaydb/jay/standby"
)

// A Switch is a source of a standby in whose place another one can be put while the standby follows. Its zero value is a source
// that does not answer.
type Switch struct {
	mu   sync.Mutex
	now  standby.Source
	last io.Closer
}

// Stream implements standby.Source.
func (s *Switch) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil, errors.New("the source of the test is gone")
	}
	in, err := s.now.Stream(ctx, request)
	s.last = in
	return in, err
}

// Set replaces the source, and cuts the present stream off. A source of nil does not answer.
func (s *Switch) Set(now standby.Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	if s.last != nil {
		_ = s.last.Close() // it was read
	}
}
