package verify

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// subscription is what was read of one.
type subscription struct {
	name       string
	definition *subs.Definition
	progress   *subs.Progress
	broken     bool // one of them cannot be decoded
	others     bool // a record beside these two
}

// readSubscriptions reads the subscriptions, whose keys are sorted by their names.
func (v *verifier) readSubscriptions() error {
	var s subscription
	err := v.readAll(format.SpaceSubscription, func(r storage.Reader, key, value []byte) error {
		name, rest := cutName(key)
		if name == "" || len(rest) == 0 || subs.CheckName(name) != nil {
			v.damage(KeyMalformed, key, "the key is not a name, 00 and a part")
			return nil
		}
		if name != s.name {
			if err := v.endSubscription(r, &s); err != nil {
				return err
			}
			s = subscription{name: name}
		}
		v.partOf(&s, key, rest, value)
		return nil
	})
	if err != nil {
		return err
	}
	if err := v.use(func(r storage.Reader) error { return v.endSubscription(r, &s) }); err != nil {
		return err
	}
	// Floors of subscriptions that are not there.
	prefix := append([]byte{format.SpaceMeta}, format.FloorPrefix+format.SubscriptionFloor...)
	return v.walk(prefix, format.PrefixEnd(prefix), func(r storage.Reader, key, _ []byte) error {
		name, _ := cutName(key)
		_, found, known, err := v.get(r, format.SubscriptionKey(name[len(prefix)-1:]))
		if err == nil && known && !found {
			v.damage(FloorExtra, key, "there is no such subscription")
		}
		return err
	})
}

// partOf reads one record of a subscription.
func (v *verifier) partOf(s *subscription, key, rest, value []byte) {
	var err error
	switch {
	case string(rest) == "d":
		s.definition = new(subs.Definition)
		if err = json.Unmarshal(value, s.definition); err == nil && s.definition.Name != s.name {
			err = fmt.Errorf("it names subscription %q", s.definition.Name)
		}
		if err == nil {
			_, err = query.Parse(s.definition.Query, nil)
		}
	case string(rest) == "p":
		s.progress = new(subs.Progress)
		err = json.Unmarshal(value, s.progress)
	case rest[0] == 'f' && len(rest) > 2 && rest[len(rest)-1] == 0:
		s.others = true
		var f subs.Failure
		id := string(rest[1 : len(rest)-1])
		if err := json.Unmarshal(value, &f); err != nil || v.rules.Fold(f.ID) != id {
			v.damage(SubscriptionExtra, key, "its record of a document that has failed is no record of %q: %.200q", id, value)
		}
	default:
		v.damage(KeyMalformed, key, "the key is not a name, 00 and a part")
	}
	if err != nil {
		s.broken = true
		v.damage(SubscriptionRecord, key, "%v: %.200q", err, value)
	}
}

// endSubscription checks that the records of a subscription fit.
func (v *verifier) endSubscription(r storage.Reader, s *subscription) error {
	if s.name == "" || s.broken {
		return nil
	}
	key := format.SubscriptionKey(s.name)
	switch {
	case s.definition == nil && s.progress == nil:
		v.damage(SubscriptionExtra, key, "documents have failed, and neither a definition nor a position is there")
		return nil
	case s.definition == nil:
		v.damage(SubscriptionHalf, key, "it has a position, and no definition")
		return nil
	case s.progress == nil:
		v.damage(SubscriptionHalf, key, "it has a definition, and no position")
		return nil
	}
	if v.ceilingOK && s.progress.Position > v.ceiling {
		v.damage(SubscriptionAhead, key, "its position is %d, and etags are reserved up to %d", s.progress.Position, v.ceiling)
	}
	floorKey := metaKey(format.FloorPrefix + format.SubscriptionFloor + s.name)
	value, found, known, err := v.get(r, floorKey)
	if err != nil || !known {
		return err
	}
	floor, bad := etagIn(value)
	switch needs := s.definition.Deletions && !s.progress.Disabled; {
	case found && bad != nil: // noted before
	case needs && !found:
		v.damage(FloorMissing, floorKey, "the subscription needs the records of deletions after etag %d", max(s.progress.Position, s.progress.Base))
	case needs && floor != max(s.progress.Position, s.progress.Base):
		v.damage(FloorMissing, floorKey, "the subscription needs the records of deletions after etag %d, and those after %d are kept", max(s.progress.Position, s.progress.Base), floor)
	case !needs && found:
		v.damage(FloorExtra, floorKey, "the subscription needs no records of deletions")
	}
	return nil
}
