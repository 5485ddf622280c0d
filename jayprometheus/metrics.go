package jayprometheus

import "github.com/jaydb/jay"

// metric is one figure of the database.
type metric struct {
	name, help string
	value      func(*jay.Stats) float64
}

// truth returns 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// gauges are the figures of a moment.
var gauges = []metric{
	{"failed", "1 if the storage engine has failed: writes are refused until the database is opened again.", func(s *jay.Stats) float64 { return truth(s.Engine.Failed) }},
	{"disk_full", "1 if writes are refused because less is free on the disk than Options.MinFreeBytes.", func(s *jay.Stats) float64 { return truth(s.DiskFull) }},
	{"counting", "1 as long as a database of an older version is counted: figures of collections are too small.", func(s *jay.Stats) float64 { return truth(s.Counting) }},
	{"last_etag", "Number of the newest write.", func(s *jay.Stats) float64 { return float64(s.Counters.Etag) }},

	{"attachments", "Attachments of all documents.", func(s *jay.Stats) float64 { return float64(s.Attachments.Attachments) }},
	{"attachment_bytes", "Bytes of all attachments.", func(s *jay.Stats) float64 { return float64(s.Attachments.Bytes) }},
	{"attachment_contents", "Different contents of attachments.", func(s *jay.Stats) float64 { return float64(s.Attachments.Contents) }},
	{"attachment_stored_bytes", "Bytes of the different contents.", func(s *jay.Stats) float64 { return float64(s.Attachments.StoredBytes) }},
	{"attachments_removing", "Contents and broken uploads that are still to be removed, at most 10,000.", func(s *jay.Stats) float64 { return float64(s.Attachments.Removing) }},

	{"expiring_documents", "Documents that will expire.", func(s *jay.Stats) float64 { return float64(s.Expiry.Expiring) }},
	{"refreshing_documents", "Documents that will be refreshed.", func(s *jay.Stats) float64 { return float64(s.Expiry.Refreshing) }},
	{"due", "What is due and was not done yet, at most 10,000.", func(s *jay.Stats) float64 { return float64(s.Expiry.Due) }},
	{"due_since_seconds", "Unix time at which the first of what is due was due; 0 if nothing is.", func(s *jay.Stats) float64 {
		if s.Expiry.DueSince.IsZero() {
			return 0
		}
		return float64(s.Expiry.DueSince.UnixMilli()) / 1e3
	}},

	{"disk_bytes", "All files of the database.", func(s *jay.Stats) float64 { return float64(s.Engine.DiskBytes) }},
	{"log_bytes", "Files of the log.", func(s *jay.Stats) float64 { return float64(s.Engine.LogBytes) }},
	{"reclaimable_bytes", "What a compaction would free, as far as is known.", func(s *jay.Stats) float64 { return float64(s.Engine.ReclaimableBytes) }},
	{"memtable_bytes", "Committed data that is not in tables yet.", func(s *jay.Stats) float64 { return float64(s.Engine.MemTableBytes) }},
	{"cache_bytes", "Blocks in the cache.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheBytes) }},
	{"tables", "Files of tables.", func(s *jay.Stats) float64 { return float64(s.Engine.Tables) }},
	{"read_depth", "Tables that a look-up may have to ask.", func(s *jay.Stats) float64 { return float64(s.Engine.ReadDepth) }},
	{"debt_bytes", "About how much is still to be merged.", func(s *jay.Stats) float64 { return float64(s.Engine.DebtBytes) }},
	{"stalled", "1 while writers wait for flushes or compactions.", func(s *jay.Stats) float64 { return truth(s.Engine.Stalled) }},
}

// counters count from Open on.
var counters = []metric{
	{"commits_total", "Commits.", func(s *jay.Stats) float64 { return float64(s.Engine.Commits) }},
	{"log_syncs_total", "Syncs of the log.", func(s *jay.Stats) float64 { return float64(s.Engine.LogSyncs) }},
	{"log_sync_seconds_total", "Time that the syncs of the log took.", func(s *jay.Stats) float64 { return s.Engine.LogSyncTime.Seconds() }},
	{"written_bytes_total", "Bytes written to the log and to tables.", func(s *jay.Stats) float64 { return float64(s.Engine.WrittenBytes) }},
	{"cache_hits_total", "Blocks found in the cache.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheHits) }},
	{"cache_misses_total", "Blocks read from the disk.", func(s *jay.Stats) float64 { return float64(s.Engine.CacheMisses) }},
	{"flushes_total", "Flushes of memory to tables.", func(s *jay.Stats) float64 { return float64(s.Engine.Flushes) }},
	{"compactions_total", "Merges of tables.", func(s *jay.Stats) float64 { return float64(s.Engine.Compactions) }},
	{"stalls_total", "Times that writers had to wait for flushes or compactions.", func(s *jay.Stats) float64 { return float64(s.Engine.Stalls) }},
	{"stall_seconds_total", "Time that they waited.", func(s *jay.Stats) float64 { return s.Engine.StallTime.Seconds() }},
	{"expired_total", "Documents that have expired and were deleted.", func(s *jay.Stats) float64 { return float64(s.Expiry.Deleted) }},
	{"refreshed_total", "Documents that were refreshed.", func(s *jay.Stats) float64 { return float64(s.Expiry.Refreshed) }},
}

// shares are the figures of each share of the memory.
var shares = []struct {
	name, help string
	values     func(*jay.Stats) []named
}{
	{"memory_share_bytes", "What each share of the memory may have. Together they are the bound, Options.MaxMemory or that of Options.Memory.", func(s *jay.Stats) (all []named) {
		for _, share := range s.Memory.Shares {
			all = append(all, named{share.Name, share.Bytes})
		}
		return all
	}},
	{"memory_share_used_bytes", "What each share of the memory has.", func(s *jay.Stats) (all []named) {
		for _, share := range s.Memory.Shares {
			all = append(all, named{share.Name, share.UsedBytes})
		}
		return all
	}},
}

// collections are the figures of each collection.
var collections = []struct {
	name, help string
	values     func(*jay.Stats) []named
}{
	{"documents", "Documents.", func(s *jay.Stats) (all []named) {
		for _, c := range s.Collections {
			all = append(all, named{c.Name, c.Documents})
		}
		return all
	}},
	{"document_bytes", "Bytes of IDs, metadata and bodies, before compression.", func(s *jay.Stats) (all []named) {
		for _, c := range s.Collections {
			all = append(all, named{c.Name, c.Bytes})
		}
		return all
	}},
	{"revisions", "Older versions of documents.", func(s *jay.Stats) (all []named) {
		for _, c := range s.Revisions {
			all = append(all, named{c.Collection, c.Revisions})
		}
		return all
	}},
}
