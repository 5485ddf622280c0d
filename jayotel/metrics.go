package jayotel

import "github.com/jaydb/jay"

// figure is one of jay.DB.Stats.
type figure struct {
	name, unit, help string
	value            func(*jay.Stats) float64
}

// truth returns 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gauges are the figures of a moment.
var gauges = []figure{
	{"failed", "1", "1 if the storage engine has failed: writes are refused until the database is opened again.", func(s *jay.Stats) float64 { return truth(s.Engine.Failed) }},
	{"disk.full", "1", "1 if writes are refused because less is free on the disk than Options.MinFreeBytes.", func(s *jay.Stats) float64 { return truth(s.DiskFull) }},
	{"disk.size", "By", "All files of the database.", func(s *jay.Stats) float64 { return float64(s.Engine.DiskBytes) }},
	{"log.size", "By", "Files of the log.", func(s *jay.Stats) float64 { return float64(s.Engine.LogBytes) }},
	{"reclaimable.size", "By", "What a compaction would free, as far as is known.", func(s *jay.Stats) float64 { return float64(s.Engine.ReclaimableBytes) }},
	{"memtable.size", "By", "Committed data that is not in tables yet.", func(s *jay.Stats) float64 { return float64(s.Engine.MemTableBytes) }},
	{"cache.size", "By", "Blocks in the cache.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheBytes) }},
	{"debt.size", "By", "About how much is still to be merged.", func(s *jay.Stats) float64 { return float64(s.Engine.DebtBytes) }},
	{"read.depth", "{table}", "Tables that a look-up may have to ask.", func(s *jay.Stats) float64 { return float64(s.Engine.ReadDepth) }},
	{"stalled", "1", "1 while writers wait for flushes or compactions.", func(s *jay.Stats) float64 { return truth(s.Engine.Stalled) }},
	{"attachments", "{attachment}", "Attachments of all documents.", func(s *jay.Stats) float64 { return float64(s.Attachments.Attachments) }},
	{"attachments.size", "By", "Bytes of the different contents of attachments.", func(s *jay.Stats) float64 { return float64(s.Attachments.StoredBytes) }},
	{"expiring", "{document}", "Documents that will expire.", func(s *jay.Stats) float64 { return float64(s.Expiry.Expiring) }},
	{"due", "{document}", "What is due and was not done yet, at most 10,000.", func(s *jay.Stats) float64 { return float64(s.Expiry.Due) }},
	{"counting", "1", "1 as long as a database of an older version is counted.", func(s *jay.Stats) float64 { return truth(s.Counting) }},
}

// counters count from Open on.
var counters = []figure{
	{"commits", "{commit}", "Commits.", func(s *jay.Stats) float64 { return float64(s.Engine.Commits) }},
	{"log.syncs", "{sync}", "Syncs of the log.", func(s *jay.Stats) float64 { return float64(s.Engine.LogSyncs) }},
	{"log.sync.time", "s", "Time that the syncs of the log took.", func(s *jay.Stats) float64 { return s.Engine.LogSyncTime.Seconds() }},
	{"written", "By", "Bytes written to the log and to tables.", func(s *jay.Stats) float64 { return float64(s.Engine.WrittenBytes) }},
	{"cache.hits", "{block}", "Blocks found in the cache.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheHits) }},
	{"cache.misses", "{block}", "Blocks read from the disk.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheMisses) }},
	{"flushes", "{flush}", "Flushes of memory to tables.", func(s *jay.Stats) float64 { return float64(s.Engine.Flushes) }},
	{"compactions", "{compaction}", "Merges of tables.", func(s *jay.Stats) float64 { return float64(s.Engine.Compactions) }},
	{"stalls", "{stall}", "Times that writers had to wait for flushes or compactions.", func(s *jay.Stats) float64 { return float64(s.Engine.Stalls) }},
	{"stall.time", "s", "Time that they waited.", func(s *jay.Stats) float64 { return s.Engine.StallTime.Seconds() }},
	{"expired", "{document}", "Documents that have expired and were deleted.", func(s *jay.Stats) float64 { return float64(s.Expiry.Deleted) }},
}
