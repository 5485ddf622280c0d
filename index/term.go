package index

// TermList says which terms of an index of words are listed.
type TermList struct {
	Field  string // of the index; "" is its first one
	Prefix string // that the terms begin with, folded as they are; "" is all terms
	After  string // a term: those behind it are listed; "" is from the first one
	Limit  int    // of terms; 0 is 100, and 10,000 is the most
}

// Term is a term that an index of words has of a field: a word as the analyzer of the field makes it, such as its stem.
type Term struct {
	Text      string `json:"term"`
	Documents int64  `json:"documents"` // that have it
}
