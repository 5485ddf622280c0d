package serve

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/jaydb/jay"
)

// Hubs passes the changes of databases on to the sockets that watch them. Each database
// with a socket has a hub.
type Hubs struct {
	ctx     context.Context // of the server
	running *sync.WaitGroup // which the server awaits before it closes the databases
	opts    *Options

	mu    sync.Mutex
	byKey map[string]*hub // Guarded by mu.
}

// hub passes the changes of one database on to its sockets. It runs one change feed for
// all of them, and only while some socket watches documents: an idle socket costs a
// goroutine that reads.
type hub struct {
	all   *Hubs
	d     *Database
	db    *jay.DB // stays open as long as there is a socket
	users int     // number of sockets. Guarded by Hubs.mu.

	mu       sync.Mutex
	sockets  map[*socket]struct{} // Guarded by mu.
	watching map[*socket]struct{} // those that watch documents. Guarded by mu.
	opened   chan struct{}        // closed when the feed has its position; nil without a feed. Guarded by mu.
	stop     context.CancelFunc   // ends the feed. Guarded by mu.
}

// join adds a socket to the hub of its database. The caller must call leave.
func (hs *Hubs) join(d *Database, db *jay.DB, k *socket) *hub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byKey[d.Key]
	if h == nil {
		h = &hub{all: hs, d: d, db: db, sockets: make(map[*socket]struct{}), watching: make(map[*socket]struct{})}
		hs.byKey[d.Key] = h
	}
	h.users++
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sockets[k] = struct{}{}
	return h
}

// leave removes a socket.
func (hs *Hubs) leave(h *hub, k *socket) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(hs.byKey, h.d.Key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sockets, k)
	h.unwatch(k)
}

// find returns the hub of a database, or nil.
func (hs *Hubs) find(key string) *hub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.byKey[key]
}

// watch makes a socket watch documents. It returns when the socket is sure to get every
// change that is committed from then on.
func (h *hub) watch(ctx context.Context, k *socket) error {
	h.mu.Lock()
	h.watching[k] = struct{}{}
	if h.opened == nil {
		feed, stop := context.WithCancel(h.all.ctx)
		h.opened, h.stop = make(chan struct{}), stop
		channel := h.opened
		// Close waits for the WaitGroup. It counts the socket's request, so adding here is
		// allowed.
		h.all.running.Go(func() { h.follow(feed, sync.OnceFunc(func() { close(channel) })) })
	}
	opened := h.opened
	h.mu.Unlock()
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unwatch undoes watch. h.mu is held.
func (h *hub) unwatch(k *socket) {
	delete(h.watching, k)
	if len(h.watching) == 0 && h.opened != nil {
		h.stop()
		h.opened, h.stop = nil, nil
	}
}

// follow runs the feed and passes its changes on, until ctx ends.
func (h *hub) follow(ctx context.Context, opened func()) {
	defer opened() // callers of watch then see that their socket has ended
	err := func() error {
		for change, err := range h.db.Changes(ctx, jay.SinceNow, jay.Opened(opened)) {
			if err != nil {
				return err
			}
			h.pass(ctx, &change)
		}
		return nil
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil { // there may be another feed by now
		return
	}
	// Sockets that may have missed a change must be ended. A socket that joins before they
	// have left gets a feed of its own.
	h.all.opts.Logger.Error("server: a change feed has ended", "database", h.d.Key, "err", err)
	for k := range h.watching {
		k.drop(websocket.StatusInternalError, "changes were lost: connect again")
		h.unwatch(k)
	}
}

// pass sends a change to the sockets that watch its document.
func (h *hub) pass(ctx context.Context, change *jay.Change) {
	kind := "Put"
	if change.Deleted {
		kind = "Delete"
	}
	id, collection := strings.ToLower(change.ID), strings.ToLower(change.Collection)
	var message []byte
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil { // there may be another feed by now
		return
	}
	for k := range h.watching {
		if !k.wants(id, collection) {
			continue
		}
		if message == nil {
			message = MustJSON(map[string]any{"Type": "DocumentChange", "Value": map[string]any{
				"Type": kind, "Id": change.ID, "CollectionName": change.Collection, "ChangeVector": change.ChangeVector()}})
		}
		k.enqueue(message)
	}
}

// publish sends a message to the sockets of a database for which wants returns true.
func (hs *Hubs) publish(key string, wants func(k *socket) bool, message func() any) {
	h := hs.find(key)
	if h == nil {
		return
	}
	var text []byte
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.sockets {
		if !wants(k) {
			continue
		}
		if text == nil {
			text = MustJSON(message())
		}
		k.enqueue(text)
	}
}

// publishOperation sends the state of an operation to the sockets that watch it.
func (hs *Hubs) publishOperation(key string, id int64, state OperationState) {
	hs.publish(key, func(k *socket) bool { return k.wantsOperation(id) }, func() any {
		return map[string]any{"Type": "OperationStatusChange", "Value": map[string]any{"OperationId": id, "State": state}}
	})
}

// PublishIndex sends an event of an index to the sockets that watch it.
func (hs *Hubs) PublishIndex(key, kind, name string) {
	hs.publish(key, func(k *socket) bool { return k.wantsIndex(name) }, func() any {
		return map[string]any{"Type": "IndexChange", "Value": map[string]any{"Type": kind, "Name": name}}
	})
}

// Bounds of a socket.
const (
	maxSocketMessages = 1024     // messages that wait for the client
	maxSocketBytes    = 1 << 20  // bytes of these messages
	MaxSocketCommand  = 64 << 10 // bytes of a command
	maxSocketWatches  = 1024     // names
	watchOverhead     = 64       // bytes that a name takes beside its text
	watchReply        = 1 << 10  // bytes that a name leaves for the replies to commands
)

// socket is a connection over which a client gets changes.
type socket struct {
	opts   *Options
	conn   *websocket.Conn
	hub    *hub
	memory *Holding // of queue and of watches

	mu      sync.Mutex
	watches watches  // Guarded by mu.
	names   int64    // bytes that watches takes. Guarded by mu.
	queue   [][]byte // messages that wait. Guarded by mu.
	bytes   int64    // of queue, and of what is being written. Guarded by mu.
	writing bool     // a goroutine writes the queue. Guarded by mu.
	ended   bool     // nothing more is sent. Guarded by mu.
}

// watches is the set of what a socket watches. Names are in lower case.
type watches struct {
	docs, indexes, operations bool
	ids, collections, names   map[string]bool
	prefixes                  []string
	numbers                   map[string]bool // numbers of operations
}

// documents reports whether any documents are watched.
func (w *watches) documents() bool {
	return w.docs || len(w.ids)+len(w.collections)+len(w.prefixes) > 0
}

func (w *watches) count() int {
	return len(w.ids) + len(w.collections) + len(w.names) + len(w.prefixes) + len(w.numbers)
}

func (k *socket) wants(id, collection string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := &k.watches
	return w.docs || w.ids[id] || w.collections[collection] || slices.ContainsFunc(w.prefixes, func(p string) bool { return strings.HasPrefix(id, p) })
}

func (k *socket) wantsOperation(id int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.watches.operations || k.watches.numbers[strconv.FormatInt(id, 10)]
}

func (k *socket) wantsIndex(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.watches.indexes || k.watches.names[strings.ToLower(name)]
}

// enqueue queues a message for the client. A client for which too many messages wait, or for
// whose messages there is no memory, is disconnected, as it must not miss some without noticing.
func (k *socket) enqueue(message []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return
	}
	n, lost := int64(len(message)), ""
	switch {
	case len(k.queue) >= maxSocketMessages || k.bytes+n > maxSocketBytes:
		lost = "the client reads too slowly: changes were lost"
	case k.memory.Take(n) != nil:
		lost = "the memory of the sender's requests is in use: changes were lost"
	}
	if lost != "" {
		k.ended = true
		go k.close(websocket.StatusPolicyViolation, lost)
		return
	}
	k.bytes += n
	k.queue = append(k.queue, message)
	if !k.writing {
		k.writing = true
		go k.write()
	}
}

// write sends the queued messages until the queue is empty.
func (k *socket) write() {
	for {
		k.mu.Lock()
		batch := k.queue
		k.queue = nil
		if len(batch) == 0 || k.ended {
			k.memory.Give(k.bytes)
			k.queue, k.bytes, k.writing = nil, 0, false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()

		// The Go client reads only arrays.
		text := []byte{'['}
		sum := int64(0)
		for i, message := range batch {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, message...)
			sum += int64(len(message))
		}
		ctx, cancel := context.WithTimeout(context.Background(), k.opts.GraceTimeout)
		err := k.conn.Write(ctx, websocket.MessageText, append(text, ']'))
		cancel()
		k.mu.Lock()
		k.bytes -= sum
		k.memory.Give(sum)
		if err != nil {
			k.ended = true
		}
		k.mu.Unlock()
		if err != nil {
			_ = k.conn.CloseNow() // this ends the reader
		}
	}
}

// drop ends the socket.
func (k *socket) drop(code websocket.StatusCode, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ended {
		k.ended = true
		go k.close(code, reason)
	}
}

// close sends the reason and closes the connection, within seconds if the client does not
// answer.
func (k *socket) close(code websocket.StatusCode, reason string) {
	k.opts.Logger.Debug("server: a changes socket is closed", "database", k.hub.d.Key, "reason", reason)
	_ = k.conn.Close(code, reason) // the client may have gone
}

// changeCommand is what a client sends.
type changeCommand struct {
	CommandID int64 `json:"CommandId"`
	Command   string
	Param     json.RawMessage
	Params    json.RawMessage // of commands that are not there
}

// features is the first message of a socket. Clients with a cache wait for it, then watch all
// documents and indexes, as the shorter messages for caches are not there.
var features = MustJSON(map[string]any{"TopologyChange": true, "AggressiveCachingChange": false})

// Attend carries out the commands of a client and sends it what it watches, until the client
// goes or ctx ends.
func (hs *Hubs) Attend(ctx context.Context, d *Database, db *jay.DB, conn *websocket.Conn, memory *Holding) {
	k := &socket{opts: hs.opts, conn: conn, memory: memory}
	k.hub = hs.join(d, db, k)
	defer hs.leave(k.hub, k)
	defer func() {
		k.mu.Lock()
		k.ended = true
		k.memory.Give(k.names) // no more than that: write gives the rest
		k.mu.Unlock()
		_ = conn.CloseNow()
	}()
	stop := context.AfterFunc(ctx, func() { k.drop(websocket.StatusGoingAway, "the server, the database or the right to it ends") })
	defer stop()
	k.enqueue(features)
	for {
		// The context must not end: it would cut the connection before the reason is sent.
		_, text, err := conn.Read(context.Background())
		if err != nil {
			return
		}
		if err := k.command(ctx, text); err != nil {
			return
		}
	}
}

// command carries out a command, and confirms it.
func (k *socket) command(ctx context.Context, text []byte) error {
	var command changeCommand
	if err := json.Unmarshal(text, &command); err != nil {
		k.drop(websocket.StatusUnsupportedData, "a command must be JSON")
		return nil
	}
	watch, p := false, (*Problem)(nil)
	if _, err := SizeOf(text, PlanOf(reflect.TypeOf(command))); err != nil { // members that it does not have
		p = ProblemOf(err)
	} else {
		watch, p = k.apply(&command)
	}
	if p != nil {
		k.enqueue(MustJSON(map[string]any{"Type": "Error", "CommandId": command.CommandID, "Exception": p.Kind + ": " + p.Message, "Error": p.Message}))
		return nil
	}
	if watch {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // the client waits for 15
		defer cancel()
		if err := k.hub.watch(ctx, k); err != nil {
			return err
		}
	} else {
		k.hub.mu.Lock()
		k.mu.Lock()
		none := !k.watches.documents()
		k.mu.Unlock()
		if none {
			k.hub.unwatch(k)
		}
		k.hub.mu.Unlock()
	}
	k.enqueue(MustJSON(map[string]any{"Type": "Confirm", "CommandId": command.CommandID}))
	return nil
}

// apply changes what the socket watches, and reports whether documents are watched now. The
// socket pays for the names.
func (k *socket) apply(command *changeCommand) (documents bool, p *Problem) {
	param, err := command.param()
	if err != nil {
		return false, err
	}
	name, watch := strings.CutPrefix(strings.ToLower(command.Command), "watch-")
	if !watch {
		var unwatch bool
		if name, unwatch = strings.CutPrefix(name, "unwatch-"); !unwatch {
			return false, BadRequest("unknown command %.100q", command.Command)
		}
	}
	switch name {
	case "docs", "indexes", "operations", "topology-change":
		if param != "" {
			return false, BadRequest("%s takes no Param", command.Command)
		}
		fallthrough
	case "doc", "prefix", "collection", "index", "operation":
		if len(command.Params) > 0 && string(command.Params) != "null" {
			return false, BadRequest("%s takes no Params", command.Command)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := &k.watches
	// pay takes memory for the name, or gives it back, unless it stays as it is.
	pay := func(found bool) error {
		n := int64(len(param)) + watchOverhead
		switch {
		case watch && !found:
			if err := k.memory.Take(n + watchReply); err != nil {
				return err
			}
			k.memory.Give(watchReply)
			k.names += n
		case !watch && found:
			k.memory.Give(n)
			k.names -= n
		}
		return nil
	}
	set := func(m *map[string]bool) error {
		if err := pay((*m)[param]); err != nil {
			return err
		}
		if !watch {
			delete(*m, param)
			return nil
		}
		if *m == nil {
			*m = make(map[string]bool)
		}
		(*m)[param] = true
		return nil
	}
	switch name {
	case "docs":
		w.docs = watch
	case "indexes":
		w.indexes = watch
	case "operations":
		w.operations = watch
	case "topology-change": // the topology never changes
	case "doc", "prefix", "collection", "index", "operation":
		if param == "" {
			return false, BadRequest("%s needs a Param", command.Command)
		}
		if watch && w.count() >= maxSocketWatches {
			return false, BadRequest("a socket watches at most %d names", maxSocketWatches)
		}
		var err error
		switch name {
		case "doc":
			err = set(&w.ids)
		case "collection":
			err = set(&w.collections)
		case "index":
			err = set(&w.names)
		case "operation":
			err = set(&w.numbers)
		case "prefix":
			i := slices.Index(w.prefixes, param)
			switch err = pay(i >= 0); {
			case err != nil:
			case watch && i < 0:
				w.prefixes = append(w.prefixes, param)
			case !watch && i >= 0:
				w.prefixes = slices.Delete(w.prefixes, i, i+1)
			}
		}
		if err != nil {
			return false, ProblemOf(err)
		}
	default:
		return false, NotSupported("%.100q is not there: documents, collections, prefixes, indexes and operations can be watched", command.Command)
	}
	return w.documents(), nil
}

// param returns the parameter, text or a number, in lower case.
func (c *changeCommand) param() (string, *Problem) {
	if len(c.Param) == 0 || string(c.Param) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(c.Param, &text) != nil {
		text = string(c.Param)
	}
	if len(text) > 2048 {
		return "", BadRequest("Param has at most 2048 bytes")
	}
	return strings.ToLower(text), nil
}
