package jay

// SetChangeBatch makes Query.Patch and Query.Delete write fewer documents at a time,
// and returns what undoes that.
func SetChangeBatch(documents int) (restore func()) {
	old := changeDocuments
	changeDocuments = documents
	return func() { changeDocuments = old }
}
