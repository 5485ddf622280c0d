package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Keys of the records that package jay and this package keep. They are part of the format.
const (
	// InfoKey has the Info of the cluster.
	InfoKey = "cluster"
	// MemberPrefix and a node tag have its Member.
	MemberPrefix = "members/"
	// BeatPrefix and a node tag have the Beat of the run that has the tag.
	BeatPrefix = "beats/"
	// IdentityPrefix and the folded name of an identity ("users|") have its last number.
	IdentityPrefix = "identities/"
	// ValuePrefix and the folded key of a compare-exchange value have it.
	ValuePrefix = "values/"
	// CallPrefix, a database ID, "/", a run, "/" and a name have what is known of the newest call of that name.
	CallPrefix = "calls/"
)

// Info is what all nodes of a cluster have in common. The first one that joins decides.
type Info struct {
	Cluster       string    `json:"cluster"` // made at random
	Created       time.Time `json:"created"`
	Separator     string    `json:"separator"`
	CaseSensitive bool      `json:"caseSensitive,omitempty"`
}

// Member is a database that has joined a cluster, and its node tag. The tag belongs to it
// for good, also when it has left.
type Member struct {
	Tag      string    `json:"tag"`
	Database string    `json:"database"`          // its ID
	Address  string    `json:"address,omitempty"` // under which it can be reached, if it is served
	Joined   time.Time `json:"joined"`

	// Left is when the database has left the cluster; zero if it has not.
	Left time.Time `json:"left,omitzero"`

	// Copied is when two copies of the database were found to have run under the tag, and
	// Runs which: they make no IDs with it until Resolve. Zero if there is nothing to resolve.
	Copied time.Time `json:"copied,omitzero"`
	Runs   []string  `json:"runs,omitempty"`

	// LastSeen is the time of the last beat of the node's heart, by its own clock; zero if it
	// was never open or was closed properly, and then Running is false. Of a node that is cut off
	// or was killed both stay as they were. Members sets them; they are not in the record.
	LastSeen time.Time `json:"-"`
	Running  bool      `json:"-"`
}

// Beat is the heartbeat of a node that has a tag: each is one Commit that raises N, on
// the condition that the record is that of the beat before. A node whose condition fails
// has met another run. Whether a node is alive is judged by watching the record for
// Period, not by comparing clocks.
type Beat struct {
	Run    string        `json:"run"` // made at random when a database is opened
	N      uint64        `json:"n"`
	At     time.Time     `json:"at"`     // by the clock of the node; for people
	Period time.Duration `json:"period"` // a node without a beat for so long is taken for dead
	Closed bool          `json:"closed,omitempty"`
}

// Members returns all databases that have joined the cluster, those that have left
// included, in the order of their tags.
func Members(ctx context.Context, c Coordinator) ([]Member, error) {
	var list []Member
	err := each(ctx, c, MemberPrefix, func(r Record) error {
		m, err := decodeMember(r)
		list = append(list, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("members of the cluster: %w", err)
	}
	beats := make(map[string]Beat)
	err = each(ctx, c, BeatPrefix, func(r Record) error {
		var b Beat
		err := decode(r, &b)
		beats[strings.TrimPrefix(r.Key, BeatPrefix)] = b
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("members of the cluster: %w", err)
	}
	for i := range list {
		if b, found := beats[list[i].Tag]; found && !b.Closed {
			list[i].LastSeen, list[i].Running = b.At, true
		}
	}
	return list, nil
}

// Leave takes a database out of the cluster, and retires its tag: no database ever gets it
// again, and this one makes no more IDs with it, nor identities and compare-exchange values,
// from its next heartbeat on. Nothing brings it back but jay.Options.CopyTag, which makes
// it a new member. now is recorded. To leave again changes nothing.
func Leave(ctx context.Context, c Coordinator, tag string, now time.Time) (Member, error) {
	return changeMember(ctx, c, tag, func(m *Member) []Change {
		if !m.Left.IsZero() {
			return nil
		}
		m.Left = now.UTC()
		return []Change{}
	})
}

// Resolve gives the tag of a database of which two copies have run back to the one that
// uses it next. Call it when each other copy was removed or was opened with a CopyTag, or
// the same will be found again. It is also what a database needs that was restored from a
// backup in place of one that was lost. Resolving a tag without copies makes the next run
// of it welcome, whichever it is.
func Resolve(ctx context.Context, c Coordinator, tag string) (Member, error) {
	return changeMember(ctx, c, tag, func(m *Member) []Change {
		m.Copied, m.Runs = time.Time{}, nil
		return []Change{{Key: BeatPrefix + tag, Delete: true}}
	})
}

// changeMember commits what change does to the record of a tag, with the further changes
// that it returns; nil for none at all.
func changeMember(ctx context.Context, c Coordinator, tag string, change func(*Member) []Change) (Member, error) {
	key := MemberPrefix + tag
	for {
		found, err := c.Read(ctx, key)
		if err != nil {
			return Member{}, fmt.Errorf("node tag %q: %w", tag, err)
		}
		if found[0].Index == 0 {
			return Member{}, fmt.Errorf("node tag %q: %w: no database has it", tag, ErrUsage)
		}
		m, err := decodeMember(found[0])
		if err != nil {
			return Member{}, err
		}
		further := change(&m)
		if further == nil {
			return m, nil
		}
		value, err := json.Marshal(m)
		if err != nil {
			return Member{}, err
		}
		result, err := c.Commit(ctx, []Condition{{key, found[0].Index}}, append(further, Change{Key: key, Value: value}))
		if errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil {
			continue // to do it again does no harm
		}
		if err != nil {
			return Member{}, fmt.Errorf("node tag %q: %w", tag, err)
		}
		if result.Committed() {
			return m, nil
		}
	}
}

// each calls fn with the records of a prefix, page by page.
func each(ctx context.Context, c Coordinator, prefix string, fn func(Record) error) error {
	for after := ""; ; {
		page, err := c.Page(ctx, prefix, after, MaxPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, r := range page {
			if err := fn(r); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Key
	}
}

func decodeMember(r Record) (m Member, err error) {
	err = decode(r, &m)
	if err == nil && MemberPrefix+m.Tag != r.Key {
		err = fmt.Errorf("coordinator's record %q is that of the tag %q", r.Key, m.Tag)
	}
	return m, err
}

// decode reads the JSON of a record.
func decode(r Record, v any) error {
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("coordinator's record %q: %w", r.Key, err)
	}
	return nil
}
