package server

// OpenDatabases returns how many databases are open, for tests.
func (s *Server) OpenDatabases() int {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	return s.databases.open
}

// CloseIdle does what happens now and then, for tests.
func (s *Server) CloseIdle() { s.databases.closeIdle() }

// EndStreams does what happens now and then, for tests.
func (s *Server) EndStreams() { s.auth.endStreams() }

// CheckLoad takes and gives no place: it reports what is taken, for tests.
func (s *Server) CheckLoad() (requests int, bytes int64) {
	return len(s.gate.places) + len(s.streams.places) + len(s.sockets.places), s.memory.used.Load()
}

// Route describes an endpoint, for tests.
type Route struct {
	Method, Path, Refused string
	Body                  bool // it is read as a whole
}

// Routes returns the endpoints, for tests.
func Routes() []Route {
	var all []Route
	for _, r := range routes {
		all = append(all, Route{r.method, r.path, r.refused, r.body})
	}
	return all
}
