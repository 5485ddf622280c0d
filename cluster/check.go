package cluster

import (
	"fmt"
	"unicode/utf8"
)

// Check validates a Commit by the rules of Coordinator that hold for every implementation.
// Implementations call it first and return its error. Bounds of their own come on top.
func Check(conditions []Condition, changes []Change) error {
	seen := make(map[string]bool, max(len(conditions), len(changes)))
	for _, c := range conditions {
		if err := CheckKey(c.Key); err != nil {
			return err
		}
		if seen[c.Key] {
			return fmt.Errorf("%w: the key %.100q is compared twice", ErrUsage, c.Key)
		}
		seen[c.Key] = true
	}
	clear(seen)
	for _, c := range changes {
		if err := CheckKey(c.Key); err != nil {
			return err
		}
		if seen[c.Key] {
			return fmt.Errorf("%w: the key %.100q is changed twice", ErrUsage, c.Key)
		}
		seen[c.Key] = true
		if !c.Delete && len(c.Value) > MaxValueBytes {
			return fmt.Errorf("%w: the value of the key %.100q has %d bytes, at most %d", ErrTooLarge, c.Key, len(c.Value), MaxValueBytes)
		}
	}
	return nil
}

// CheckKey returns an ErrUsage for an invalid key.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: a key has 1 to %d bytes, not %d", ErrUsage, MaxKeyBytes, len(key))
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: the key %.100q is not UTF-8", ErrUsage, key)
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] == 0x7f {
			return fmt.Errorf("%w: the key %.100q has a control character", ErrUsage, key)
		}
	}
	return nil
}

// CheckPage returns an ErrUsage for an invalid limit of a Page.
func CheckPage(limit int) error {
	if limit < 1 || limit > MaxPage {
		return fmt.Errorf("%w: a page has 1 to %d records, not %d", ErrUsage, MaxPage, limit)
	}
	return nil
}
