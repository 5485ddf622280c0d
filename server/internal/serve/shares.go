package serve

import "slices"

// shares keeps the newest things of several senders, and at most so many in all. One too
// many drops the oldest thing of the sender that has most, so that no sender drops what
// others have few of. It is not safe for concurrent use.
type shares[T comparable] struct {
	most     int
	n        int
	bySender map[string][]T // oldest first; none is empty
}

// add adds a thing. If that is one too many, it returns the one that it dropped.
func (s *shares[T]) add(sender string, v T) (dropped T, full bool) {
	if s.bySender == nil {
		s.bySender = make(map[string][]T)
	}
	s.bySender[sender] = append(s.bySender[sender], v)
	if s.n++; s.n <= s.most {
		return dropped, false
	}
	return s.drop(sender), true
}

// drop drops the oldest thing of the sender that has most, which is this one if no other has
// more. There must be one.
func (s *shares[T]) drop(sender string) (dropped T) {
	greedy := sender
	for other, things := range s.bySender {
		if len(things) > len(s.bySender[greedy]) {
			greedy = other
		}
	}
	dropped = s.bySender[greedy][0]
	s.remove(greedy, dropped)
	return dropped
}

// remove removes a thing, if it is there.
func (s *shares[T]) remove(sender string, v T) {
	things := s.bySender[sender]
	i := slices.Index(things, v)
	if i < 0 {
		return
	}
	s.n--
	if things = slices.Delete(things, i, i+1); len(things) == 0 {
		delete(s.bySender, sender)
		return
	}
	s.bySender[sender] = things
}

// removeIf removes the things for which remove returns true.
func (s *shares[T]) removeIf(remove func(T) bool) {
	for sender, things := range s.bySender {
		before := len(things)
		things = slices.DeleteFunc(things, remove)
		if s.n -= before - len(things); len(things) == 0 {
			delete(s.bySender, sender)
			continue
		}
		s.bySender[sender] = things
	}
}
