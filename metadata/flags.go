package metadata

// appendFlags appends the member @flags, with a comma before it, if the document has
// any. RavenDB joins them by a comma and a blank.
func appendFlags(dst []byte, m *Metadata) []byte {
	if len(m.Attachments) > 0 {
		dst = append(dst, `,"@flags":"HasAttachments"`...)
	}
	return dst
}
