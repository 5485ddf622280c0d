package bulk

// What tests that replace the engine and the clock look at.
const (
	LeastWait  = leastWait
	PaceMemory = paceMemory
)

// SetClock has a writer go by another clock, in ns.
func SetClock(w *Writer, now func() int64) { w.pace.now = now }

// SetLazyClock is SetClock for the commits of a call.
func SetLazyClock(l *Lazy, now func() int64) { l.pace.now = now }
