package places

// SetMaxSeen changes how many documents are in memory, until restore is called.
func SetMaxSeen(n int) (restore func()) {
	was := maxSeen
	maxSeen = n
	return func() { maxSeen = was }
}
