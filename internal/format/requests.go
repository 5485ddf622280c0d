package format

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// SpaceRequests is the key space of the results of calls with a request ID.
//
//	'q' 'i' id 00     → number(8), JSON             the result of the call
//	'q' 'n'           → first, next, bytes uvarints which numbers are there, and how long the JSON is in all
//	'q' 's' number(8) → id                          the call with this number
//
// Part of the on-disk format. Must not change.
const (
	SpaceRequests = 'q'

	requestResult = 'i'
	requestState  = 'n'
	requestNumber = 's'
)

// RequestKey returns the key of a result.
func RequestKey(id string) []byte {
	key := append([]byte{SpaceRequests, requestResult}, id...)
	return append(key, 0)
}

// RequestNumberKey returns the key of the ID of the call with a number.
func RequestNumberKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{SpaceRequests, requestNumber}, number)
}

// RequestStateKey is the key of the RequestState.
var RequestStateKey = []byte{SpaceRequests, requestState}

// RequestState says which results are kept: those with the numbers from First to below
// Next. Part of the on-disk format. Must not change.
type RequestState struct{ First, Next, Bytes uint64 }

// Append appends the record.
func (s RequestState) Append(dst []byte) []byte {
	for _, n := range []uint64{s.First, s.Next, s.Bytes} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// DecodeRequestState is the inverse of RequestState.Append.
func DecodeRequestState(record []byte) (s RequestState, err error) {
	rest := record
	for _, field := range []*uint64{&s.First, &s.Next, &s.Bytes} {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return RequestState{}, fmt.Errorf("state of requests %.40x: %w", record, errs.ErrCorrupt)
		}
		*field, rest = n, rest[size:]
	}
	if len(rest) > 0 || s.First > s.Next {
		return RequestState{}, fmt.Errorf("state of requests %.40x: %w", record, errs.ErrCorrupt)
	}
	return s, nil
}

// DecodeRequest splits the record of a result, in its memory.
func DecodeRequest(record []byte) (number uint64, result []byte, err error) {
	if len(record) < 8 {
		return 0, nil, fmt.Errorf("result of a request %.40x: %w", record, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(record), record[8:], nil
}
