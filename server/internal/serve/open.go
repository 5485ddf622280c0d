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
	s := &Server{Options: o, Table: endpoints, Began: o.Now(), Gate: newGate(o.MaxRequests, o.QueueTimeout), Streams: newGate(o.MaxStreams, o.QueueTimeout), Memory: newBudget(requestMemory(o.MaxMemory), o.MaxSenderMemoryBytes)}
	s.Auth, s.certificates = &Authentication{opts: &s.Options, Access: AccessOf(o.Data)}, &certificates{opts: &s.Options}
	s.Authenticates.Store(o.Authenticate || o.InvitedOnly)
	if s.Databases, err = openDatabases(o); err != nil {
		return nil, err
	}
	s.Sockets = newGate(o.MaxSockets, o.QueueTimeout)
	s.Ctx, s.cancel = context.WithCancel(context.Background())
	s.Operations, s.Vectors, s.Hubs = NewOperations(o.Now), newVectors(), &Hubs{ctx: s.Ctx, running: &s.running, opts: &s.Options, byKey: make(map[string]*hub)}
	s.Operations.Changed = s.Hubs.publishOperation
	if len(o.Stores) > 0 {
		s.Operations.startApart()
	}
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

// closeIdle closes idle databases, and drops old rejects, now and then.
func (s *Server) closeIdle() {
	tick := time.NewTicker(max(min(s.Options.IdleAfter/4, time.Minute), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Databases.CloseIdle()
			s.Databases.FinishDeletions(s.Ctx)
			s.Rejects.Expire(s.Options.Now())
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
			s.refreshStores()
		case <-s.Ctx.Done():
			return
		}
	}
}

// streamCheck is the interval at which the rights of the senders of streams are checked.
const streamCheck = 5 * time.Second

// storeTimeout is how long a store may take to answer refreshStores.
const storeTimeout = 10 * time.Second

// refreshStores reads what other servers of a store may have changed, and opens a store again in which another process has taken the node tag of this
// server: it gets another one, as it would after a new start.
func (s *Server) refreshStores() {
	if len(s.Options.Stores) == 0 {
		return
	}
	ds := s.Databases
	for _, d := range ds.pinAll() {
		ctx, cancel := context.WithTimeout(s.Ctx, storeTimeout)
		if err := d.RefreshClient(ctx, d.DB); err != nil {
			s.Options.Logger.Debug("server: the configuration of clients cannot be read", "database", d.Key, "err", err)
		}
		gone := d.isTagGone(ctx)
		cancel()
		ds.unwatch(d)
		if !gone {
			continue
		}
		if err := ds.reopen(s.Ctx, d); err != nil {
			s.Options.Logger.Warn("server: a store in which another process has the node tag of this server cannot be opened yet, which is tried again", "database", d.Key, "err", err)
		} else {
			d.taken = 0
			s.Options.Logger.Info("server: a store in which another process has the node tag of this server is open again", "database", d.Key, "tag", ds.Tags.Of(d.Key))
		}
	}
}
