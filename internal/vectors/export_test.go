package vectors

// SetMaxSeen sets how many documents with several vectors are in memory at most, and returns what undoes it.
func SetMaxSeen(n int) (restore func()) {
	before := maxSeen
	maxSeen = n
	return func() { maxSeen = before }
}

// SetPartitions sets how many vectors a partition has at most and at least, and returns what undoes it.
func SetPartitions(most, least int) (restore func()) {
	m, l := MaxPartition, MinPartition
	MaxPartition, MinPartition = most, least
	return func() { MaxPartition, MinPartition = m, l }
}
