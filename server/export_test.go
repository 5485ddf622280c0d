package server

// OpenDatabases returns how many databases are open, for tests.
func (s *Server) OpenDatabases() int {
	s.databases.mu.Lock()
	defer s.databases.mu.Unlock()
	return s.databases.open
}

// CloseIdle does what happens now and then, for tests.
func (s *Server) CloseIdle() { s.databases.closeIdle() }

// CheckLoad takes and gives no place: it reports what is taken, for tests.
func (s *Server) CheckLoad() (requests int, bytes int64) {
	return len(s.gate.places), s.memory.used.Load()
}
