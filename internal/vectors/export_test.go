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

// SetCandidates sets how many vectors a query looks at, and returns what undoes it.
func SetCandidates(n int) (restore func()) {
	before := Candidates
	Candidates = n
	return func() { Candidates = before }
}

// SetReadAll sets of how many partitions all are read, and returns what undoes it.
func SetReadAll(n int) (restore func()) {
	before := ReadAll
	ReadAll = n
	return func() { ReadAll = before }
}
