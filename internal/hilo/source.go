package hilo

import (
	"context"

	"github.com/jaydb/jay/ids"
)

// Options are what the database was opened with.
type Options struct {
	Generation Generation
	Capacity   int64      // of HiLo2010 and HiLo2; 0 for none given
	Growth     ids.Growth // of HiLo2
}

// Generation is a generation of HiLo.
type Generation uint8

// The generations, in the order of their names in package jay.
const (
	HiLo4 Generation = iota
	HiLo2
	HiLo2010
)

// NewClient returns a client that draws the IDs of the database's generation.
func (g *Granter) NewClient(gate Gate) *ids.Client {
	switch g.options.Generation {
	case HiLo2:
		return ids.NewClient(&source2{Gate: gate, granter: g, paces: make(map[string]*ids.Pace)}, false)
	case HiLo2010:
		return ids.NewClient(source2010{Gate: gate, granter: g}, false)
	}
	return ids.NewClient(source4{Gate: gate, granter: g}, true)
}

// Gate is how the calls of a client enter the database: env.Env is one.
type Gate interface {
	Enter() error
	Exit()
}

// Ungated does not enter: the database's own client is called by writes that are
// inside already, and by Close.
type Ungated struct{}

// Enter implements Gate.
func (Ungated) Enter() error { return nil }

// Exit implements Gate.
func (Ungated) Exit() {}

// source4 grants the ranges of HiLo4.
type source4 struct {
	Gate
	granter *Granter
}

func (s source4) NextRange(ctx context.Context, req ids.RangeRequest) (ids.Range, error) {
	if err := s.Enter(); err != nil {
		return ids.Range{}, err
	}
	defer s.Exit()
	return s.granter.Next(ctx, req)
}

func (s source4) ReturnRange(ctx context.Context, tag string, last, end int64) (bool, error) {
	if err := s.Enter(); err != nil {
		return false, err
	}
	defer s.Exit()
	return s.granter.Return(ctx, tag, last, end)
}
