package sealed

// Source is the interface EncryptionKeys of package jay, whose keys are like Key.
type Source[K ~struct {
	ID     string
	Secret []byte
}] interface {
	// Newest returns the key of new files.
	Newest() (K, error)

	// Key returns the key with an ID.
	Key(id string) (K, error)
}

// From returns the keys of a source; nil for nil.
func From[K ~struct {
	ID     string
	Secret []byte
}](s Source[K]) Keys {
	if s == nil {
		return nil
	}
	return func(id string) (Key, error) {
		if id == "" {
			k, err := s.Newest()
			return Key(k), err
		}
		k, err := s.Key(id)
		return Key(k), err
	}
}
