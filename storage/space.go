package storage

// FreeSpacer is implemented by an engine that knows the free space of its disk.
type FreeSpacer interface {
	// FreeBytes returns how many bytes are free on the disk for this process. It makes a system call,
	// and may take as long as the call.
	FreeBytes() (uint64, error)
}

// SpaceMeasurer is implemented by an engine that knows how much space keys take.
type SpaceMeasurer interface {
	// DiskBytes returns about how many bytes the keys in [lo, hi) and their values take on disk, after
	// compression, and including deleted and overwritten values that are not freed yet. The newest
	// commits may be missing: Stats.MemTableBytes bounds their size.
	DiskBytes(lo, hi []byte) (uint64, error)
}
