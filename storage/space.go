package storage

// FreeSpacer is implemented by an engine that knows how much room its disk has.
type FreeSpacer interface {
	// FreeBytes returns how many bytes are free on the disk for this process. It asks the
	// system, and may take as long as that does.
	FreeBytes() (uint64, error)
}

// SpaceMeasurer is implemented by an engine that knows how much space keys take.
type SpaceMeasurer interface {
	// DiskBytes returns about how many bytes the keys in [lo, hi) and their values take on
	// disk, after compression and with what was deleted and overwritten and is not freed
	// yet. What was committed last may be missing: Stats.MemTableBytes bounds it.
	DiskBytes(lo, hi []byte) (uint64, error)
}
