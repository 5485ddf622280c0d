package query

// PresentRange returns the range of all values that are not missing, as the
// range of Exists.
func PresentRange(descending bool) KeyRange {
	s := keySpan{edge{[]byte{tagNull}, false}, edge{[]byte{tagObject}, true}, false}
	return s.keyRange(descending)
}
