package index

// TermList says which terms of an index of the kind "text" are listed.
type TermList struct {
	Field  string // of the index; "" is its first one
	Prefix string // prefix of the terms, folded like the terms; "" means all terms
	After  string // only terms after this one are listed; "" means from the first term
	Limit  int    // greatest number of terms; 0 means 100, and the maximum is 10,000
}

// Term is a term of a field in an index of the kind "text": a word in the form that the analyzer of
// the field makes, such as its stem.
type Term struct {
	Text      string `json:"term"`
	Documents int64  `json:"documents"` // that have the term
}
