package jay

// CheckRevisions looks at every revision, and returns an error if one contradicts
// another: the keys cannot be seen from outside.
func CheckRevisions(db *DB) error { return checkRevisions(db) }
