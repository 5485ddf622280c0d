package format

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jaydb/jay/internal/errs"
)

// SpaceCluster is the key space of what a database that belongs to a cluster has not
// brought to an end.
//
//	'o' 'l' name 00             → JSON      numbers of an identity that were reserved and that no document has; see Lost
//	'o' 'i' number(8)           → JSON      a commit of documents together with compare-exchange values: see Intent
//	'o' 'w' number(8) write(4)  → record    one of its writes: see AppendIntentWrite
//
// Part of the on-disk format. Must not change.
const (
	SpaceCluster = 'o'

	clusterLost   = 'l'
	clusterIntent = 'i'
	clusterWrite  = 'w'
)

// MembershipName is the name under 'm' of the Membership. Part of the on-disk format.
const MembershipName = "cluster"

// Membership says to which cluster the database belongs. Part of the on-disk format.
type Membership struct {
	Database string `json:"database"` // its ID: a copy has the record of its original
	Cluster  string `json:"cluster,omitempty"`

	// Run is the last run of this database that the coordinator knows, and Candidates are
	// later ones of which that is not known.
	Run        string   `json:"run,omitempty"`
	Candidates []string `json:"candidates,omitempty"`

	// Former is the cluster of the database that this one is a copy of.
	Former string `json:"former,omitempty"`

	// Floors has the identities wait for floors: the database was copied, and its original
	// does not belong to the cluster.
	Floors bool `json:"floors,omitempty"`
}

// SeenName is the name under 'm' of the Seen. Part of the on-disk format.
const SeenName = "coordinator"

// Seen is what the database has seen of its cluster's coordinator. Part of the on-disk format.
type Seen struct {
	Cluster string `json:"cluster"`        // whose coordinator
	Index   uint64 `json:"index"`          // the newest one of a commit
	Beat    uint64 `json:"beat,omitempty"` // that of the newest heartbeat of this database
	Back    uint64 `json:"back,omitempty"` // one that was not above Index: it had gone back
}

// LostKey returns the key of the lost numbers of an identity.
func LostKey(name string) []byte {
	return append(append([]byte{SpaceCluster, clusterLost}, name...), 0)
}

// LostBounds are those of all LostKeys.
func LostBounds() (lo, hi []byte) {
	return []byte{SpaceCluster, clusterLost}, []byte{SpaceCluster, clusterLost + 1}
}

// LostName returns the name in a LostKey.
func LostName(key []byte) (string, error) {
	if len(key) < 3 || key[0] != SpaceCluster || key[1] != clusterLost || key[len(key)-1] != 0 {
		return "", fmt.Errorf("key of lost numbers %.40x: %w", key, errs.ErrCorrupt)
	}
	return string(key[2 : len(key)-1]), nil
}

// MostLostSpans is how many spans of lost numbers are listed for an identity.
const MostLostSpans = 4096

// Lost are the numbers of an identity that this database has reserved from its cluster, and
// that no document has got: their writes were refused or cut short by a crash, or they
// were drawn without a document. Part of the on-disk format.
type Lost struct {
	// Spans are first and last numbers, in their order, not adjacent, at most MostLostSpans.
	Spans [][2]int64 `json:"spans"`
	// More counts the numbers that are not listed.
	More int64 `json:"more,omitempty"`
}

// Count returns how many numbers are lost.
func (l *Lost) Count() int64 {
	n := l.More
	for _, s := range l.Spans {
		n += s[1] - s[0] + 1
	}
	return n
}

// Add adds the numbers from first to last.
func (l *Lost) Add(first, last int64) {
	at := len(l.Spans)
	for at > 0 && l.Spans[at-1][0] > first {
		at--
	}
	l.Spans = append(l.Spans, [2]int64{})
	copy(l.Spans[at+1:], l.Spans[at:])
	l.Spans[at] = [2]int64{first, last}
	out := l.Spans[:1]
	for _, s := range l.Spans[1:] {
		if before := &out[len(out)-1]; s[0] <= before[1]+1 {
			before[1] = max(before[1], s[1])
		} else {
			out = append(out, s)
		}
	}
	for l.Spans = out; len(l.Spans) > MostLostSpans; l.Spans = l.Spans[1:] {
		l.More += l.Spans[0][1] - l.Spans[0][0] + 1
	}
}

// DecodeLost decodes the record of a LostKey.
func DecodeLost(record []byte) (l Lost, err error) {
	if err := json.Unmarshal(record, &l); err != nil {
		return Lost{}, fmt.Errorf("lost numbers %.100q: %w: %w", record, errs.ErrCorrupt, err)
	}
	last := int64(0)
	for _, s := range l.Spans {
		if s[0] <= last || s[1] < s[0] {
			return Lost{}, fmt.Errorf("lost numbers %.100q: %w", record, errs.ErrCorrupt)
		}
		last = s[1]
	}
	if l.More < 0 || len(l.Spans) > MostLostSpans {
		return Lost{}, fmt.Errorf("lost numbers %.100q: %w", record, errs.ErrCorrupt)
	}
	return l, nil
}

// Intent is a commit of documents together with compare-exchange values that a coordinator
// has, of which it is not known yet whether the coordinator has it. Part of the on-disk
// format.
type Intent struct {
	Slot   string `json:"slot"`   // the coordinator's record that changes with the commit
	Before uint64 `json:"before"` // the index of that record before
	Call   string `json:"call"`   // what is in that record afterwards
	Writes int    `json:"writes"`

	// Values are the folded keys of the values that the commit changes. Intents of older
	// versions have none.
	Values []string `json:"values,omitempty"`

	// Request is the request ID of the commit, or nil. Intents of older versions have none.
	Request *IntentRequest `json:"request,omitempty"`

	// KeepRevision and KeepReplaced are the numbers of the writes that keep revisions whatever the rules say: of what they find
	// and what they write, and of what they find. Intents of older versions have none.
	KeepRevision []int `json:"keepRevision,omitempty"`
	KeepReplaced []int `json:"keepReplaced,omitempty"`
}

// IntentRequest is the request ID of a commit in doubt: whoever ends the commit stores the result
// of its call.
type IntentRequest struct {
	ID      string         `json:"id"`
	Call    string         `json:"call"`
	Given   string         `json:"given,omitempty"`
	Nothing bool           `json:"nothing,omitempty"` // the result is null, and no list
	Results []IntentResult `json:"results,omitempty"`
}

// IntentResult says what the result of a commit has in one place: the metadata of one of its
// writes, or of the value of a key.
type IntentResult struct {
	Write   int    `json:"write,omitempty"` // its number, if there is no key
	Key     string `json:"key,omitempty"`   // as written
	Deleted bool   `json:"deleted,omitempty"`
}

// IntentKey returns the key of an intent.
func IntentKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{SpaceCluster, clusterIntent}, number)
}

// IntentBounds are those of all IntentKeys.
func IntentBounds() (lo, hi []byte) {
	return []byte{SpaceCluster, clusterIntent}, []byte{SpaceCluster, clusterIntent + 1}
}

// IntentNumber returns the number in an IntentKey.
func IntentNumber(key []byte) (uint64, error) {
	if len(key) != 10 || key[0] != SpaceCluster || key[1] != clusterIntent {
		return 0, fmt.Errorf("key of an intent %.40x: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[2:]), nil
}

// DecodeIntent decodes the record of an IntentKey.
func DecodeIntent(record []byte) (in Intent, err error) {
	err = json.Unmarshal(record, &in)
	if err != nil || in.Slot == "" || in.Before == 0 || in.Call == "" || in.Writes < 0 || in.Writes > math.MaxInt32 {
		return Intent{}, fmt.Errorf("intent %.100q: %w", record, errs.ErrCorrupt)
	}
	if in.Request != nil {
		for _, r := range in.Request.Results {
			if r.Key == "" && (r.Write < 0 || r.Write >= in.Writes) {
				return Intent{}, fmt.Errorf("intent %.100q: %w", record, errs.ErrCorrupt)
			}
		}
	}
	return in, nil
}

// IntentWriteKey returns the key of a write of an intent.
func IntentWriteKey(number uint64, write int) []byte {
	key := binary.BigEndian.AppendUint64([]byte{SpaceCluster, clusterWrite}, number)
	return binary.BigEndian.AppendUint32(key, uint32(write))
}

// SplitIntentWriteKey returns what is in an IntentWriteKey.
func SplitIntentWriteKey(key []byte) (number uint64, write int, ok bool) {
	if len(key) != 14 || key[0] != SpaceCluster || key[1] != clusterWrite {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[2:]), int(binary.BigEndian.Uint32(key[10:])), true
}

// IntentWriteBounds are those of the keys of all writes of an intent; of all intents
// without one.
func IntentWriteBounds(number ...uint64) (lo, hi []byte) {
	lo = []byte{SpaceCluster, clusterWrite}
	if len(number) > 0 {
		lo = binary.BigEndian.AppendUint64(lo, number[0])
	}
	return lo, PrefixEnd(lo)
}

// Kinds of writes of an intent. Part of the on-disk format. Must not change.
const (
	IntentPut    = 1
	IntentDelete = 2
)

// AppendIntentWrite appends what comes before the record of a document that an intent
// writes (metadata.Header and body; nothing for a deletion).
//
//	offset  size  what
//	0       1     kind: 1 the document is put, 2 it is deleted
//	1       n+len folded ID, string
//	        rest  the record of the document
//
// Part of the on-disk format. Must not change.
func AppendIntentWrite(dst []byte, kind byte, folded string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(folded)))
	return append(dst, folded...)
}

// DecodeIntentWrite splits the record of a write, in its memory.
func DecodeIntentWrite(value []byte) (kind byte, folded string, record []byte, err error) {
	bad := func() (byte, string, []byte, error) {
		return 0, "", nil, fmt.Errorf("write of an intent %.40x: %w", value, errs.ErrCorrupt)
	}
	if len(value) < 2 || value[0] != IntentPut && value[0] != IntentDelete {
		return bad()
	}
	n, size := binary.Uvarint(value[1:])
	if size <= 0 || n == 0 || n > uint64(len(value)-1-size) {
		return bad()
	}
	id := 1 + size
	kind, folded, record = value[0], string(value[id:id+int(n)]), value[id+int(n):]
	if (kind == IntentDelete) != (len(record) == 0) {
		return bad()
	}
	return kind, folded, record, nil
}
