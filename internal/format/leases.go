package format

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// SpaceLeases is the key space of the leases on a store that several processes write to.
//
//	'z' 'n' tag 00  → JSON       the process that has the node tag: a LeaseHolder
//	'z' 'o' 00      → number(8)  written by processes that wait for a node tag
//	'z' 'r' tag 00  → number(8)  how often that process has renewed its lease
//	'z' 'u' tag 00  → number(8)  a process has made IDs under this tag; it stays
//	'z' 'w' work 00 → JSON       the process that does this work: a LeaseHolder
//
// Part of the on-disk format. Must not change.
const (
	SpaceLeases = 'z'

	LeaseNode    = 'n'
	LeaseOpening = 'o'
	LeaseRenewal = 'r'
	LeaseUsed    = 'u'
	LeaseWork    = 'w'
)

// LeaseKey returns the key of a lease of a kind, with the tag or the name of the work.
func LeaseKey(kind byte, name string) []byte {
	key := append([]byte{SpaceLeases, kind}, name...)
	return append(key, 0)
}

// SplitLeaseKey is the inverse of LeaseKey.
func SplitLeaseKey(key []byte) (kind byte, name string, ok bool) {
	if len(key) < 3 || key[0] != SpaceLeases || key[len(key)-1] != 0 {
		return 0, "", false
	}
	return key[1], string(key[2 : len(key)-1]), true
}

// LeaseHolder is a process that has a lease. It is stored as JSON. Part of the on-disk format.
type LeaseHolder struct {
	Session  string `json:"session"`              // no other has it: not even the same process, once its lease was lost
	Tag      string `json:"tag"`                  // the node tag of the process
	Process  string `json:"process,omitempty"`    // for people
	Interval int64  `json:"intervalNs,omitempty"` // between two renewals; only of a node tag
}

// DecodeLeaseHolder decodes a record.
func DecodeLeaseHolder(record []byte) (h LeaseHolder, err error) {
	if err := json.Unmarshal(record, &h); err != nil {
		return h, fmt.Errorf("lease %.200q: %w: %w", record, errs.ErrCorrupt, err)
	}
	if h.Session == "" || h.Tag == "" {
		return h, fmt.Errorf("lease %.200q has no session or no node tag: %w", record, errs.ErrCorrupt)
	}
	return h, nil
}
