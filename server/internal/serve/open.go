package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/server/studio"
)

// Open opens a data directory, for a server with these endpoints: see server.Open.
func Open(o Options, endpoints *Table) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{Options: o, Table: endpoints, Began: o.Now(), Gate: newGate(o.MaxRequests, o.QueueTimeout), Streams: newGate(o.MaxStreams, o.QueueTimeout), Memory: newBudget(o.MaxMemoryBytes, o.MaxSenderMemoryBytes)}
	s.Auth, s.certificates = &Authentication{opts: &s.Options, Access: AccessOf(o.Data)}, &certificates{opts: &s.Options}
	s.Authenticates.Store(o.Authenticate || o.InvitedOnly)
	if s.Databases, err = openDatabases(o); err != nil {
		return nil, err
	}
	s.Sockets = newGate(o.MaxSockets, o.QueueTimeout)
	s.Ctx, s.cancel = context.WithCancel(context.Background())
	s.Operations, s.Vectors, s.Hubs = NewOperations(o.Now), newVectors(), &Hubs{ctx: s.Ctx, running: &s.running, opts: &s.Options, byKey: make(map[string]*hub)}
	s.Operations.Changed = s.Hubs.publishOperation
	s.metrics, s.studio = newMetrics(s.Gate, s.Streams, s.Memory, s.Databases), studio.Handler("")
	s.open = &Mount{server: s, authorize: onlyReads, studio: s.studio}
	if s.Nodes, err = openNodes(&s.Options, s.Databases.ServerID); err != nil {
		return nil, errors.Join(err, s.Databases.close())
	}
	if s.results, err = openResults(s.Ctx, s.Databases.System, o.MaxRememberedResults); err != nil {
		return nil, errors.Join(fmt.Errorf("server: data directory %q: %w", o.Data, err), s.Databases.close(), s.Nodes.close())
	}
	s.janitor.Go(s.closeIdle)
	s.janitor.Go(s.watchSpace)
	s.janitor.Go(s.endStreamsInTime)
	if s.Nodes.Own != nil {
		s.janitor.Go(func() { s.Nodes.join(s.Ctx) })
	}
	return s, nil
}

// closeIdle closes idle databases now and then.
func (s *Server) closeIdle() {
	tick := time.NewTicker(max(min(s.Options.IdleAfter/4, time.Minute), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Databases.CloseIdle()
			s.Databases.FinishDeletions(s.Ctx)
		case <-s.Ctx.Done():
			return
		}
	}
}

// Close refuses further requests, ends streams, waits for running requests and closes the
// databases. It is idempotent.
func (s *Server) Close() error {
	s.closed.Do(func() {
		s.refuse()
		s.cancel()
		s.running.Wait()
		s.janitor.Wait()
		s.err = errors.Join(s.Databases.close(), s.Nodes.close())
	})
	return s.err
}

// endStreamsInTime calls EndStreams at every streamCheck.
func (s *Server) endStreamsInTime() {
	tick := time.NewTicker(streamCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Auth.EndStreams()
		case <-s.Ctx.Done():
			return
		}
	}
}

// watchSpace looks after databases whose disk is full, and after standbys, until the server ends.
func (s *Server) watchSpace() {
	tick := time.NewTicker(fullInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Databases.ReopenFull(s.Ctx)
			s.Databases.refreshStandbys(s.Ctx)
		case <-s.Ctx.Done():
			return
		}
	}
}

// streamCheck is the interval at which the rights of the senders of streams are checked.
const streamCheck = 5 * time.Second
