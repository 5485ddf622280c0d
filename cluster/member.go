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
	// MemberPrefix, followed by a node tag, has the Member with the tag.
	MemberPrefix = "members/"
	// BeatPrefix, followed by a node tag, has the Beat of the run that has the tag.
	BeatPrefix = "beats/"
	// IdentityPrefix, followed by the folded name of an identity ("users|"), has its last
	// number.
	IdentityPrefix = "identities/"
	// ValuePrefix, followed by the folded key of a compare-exchange value, has the value.
	ValuePrefix = "values/"
	// CallPrefix, followed by a database ID, "/", a run, "/" and a name, has the newest
	// call of that name, for its recovery.
	CallPrefix = "calls/"
)

// Info has the settings that all nodes of a cluster share. The first node that joins sets
// them.
type Info struct {
	Cluster       string    `json:"cluster"` // made at random
	Created       time.Time `json:"created"`
	Separator     string    `json:"separator"`
	CaseSensitive bool      `json:"caseSensitive,omitempty"`
}

// Member is a database that has joined a cluster, and its node tag. The tag belongs to the
// database for good, even after it has left.
type Member struct {
	Tag      string    `json:"tag"`
	Database string    `json:"database"`          // its ID
	Address  string    `json:"address,omitempty"` // under which it can be reached, if it is served
	Joined   time.Time `json:"joined"`

	// Left is when the database has left the cluster; zero if it has not.
	Left time.Time `json:"left,omitzero"`

	// Copied is when the coordinator learned that two copies of the database have run
	// under the tag, and Runs names the two runs. Neither makes IDs with the tag until
	// Resolve. Zero if there is nothing to resolve.
	Copied time.Time `json:"copied,omitzero"`
	Runs   []string  `json:"runs,omitempty"`

	// LastSeen is the time of the node's last heartbeat, by the node's clock; zero if the
	// node was never open or was closed properly, and then Running is false. If a node was
	// killed or is cut off, both keep their last values. Members sets them; they are not
	// stored.
	LastSeen time.Time `json:"-"`
	Running  bool      `json:"-"`
}

// Beat is the heartbeat of the run that has a tag. Each beat is one Commit that raises N,
// on the condition that the record is the one of the beat before. If the condition fails,
// another run has used the tag. To find out whether a node is alive, others watch the
// record for Period; they do not compare clocks.
type Beat struct {
	Run    string        `json:"run"` // made at random when a database is opened
	N      uint64        `json:"n"`
	At     time.Time     `json:"at"`     // by the node's clock; for display only
	Period time.Duration `json:"period"` // a node without a beat for this long counts as dead
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
// again. From its next heartbeat on, the database makes no IDs with the tag and uses no
// identities and compare-exchange values. Only jay.Options.CopyTag brings it back, as a
// new member. now is stored as the time of leaving. Leaving again changes nothing.
func Leave(ctx context.Context, c Coordinator, tag string, now time.Time) (Member, error) {
	return changeMember(ctx, c, tag, func(m *Member) []Change {
		if !m.Left.IsZero() {
			return nil
		}
		m.Left = now.UTC()
		return []Change{}
	})
}

// Resolve makes a tag usable again under which two copies of a database have run: the copy
// that joins next gets it. Before the call, remove the other copies or open them with a
// CopyTag; if one still runs, it is found again. A database that was restored from a
// backup in place of a lost one needs Resolve too. Resolving a tag without copies lets the
// next run have it, whichever database directory it runs on.
func Resolve(ctx context.Context, c Coordinator, tag string) (Member, error) {
	return changeMember(ctx, c, tag, func(m *Member) []Change {
		m.Copied, m.Runs = time.Time{}, nil
		return []Change{{Key: BeatPrefix + tag, Delete: true}}
	})
}

// changeMember commits what change does to the member's record of a tag, together with the
// further changes that it returns. If change returns nil, nothing is committed.
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
			continue // repeating the change does no harm
		}
		if err != nil {
			return Member{}, fmt.Errorf("node tag %q: %w", tag, err)
		}
		if result.Committed() {
			return m, nil
		}
	}
}

// each calls fn with each record whose key begins with prefix, in the order of the keys.
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

// decode decodes the JSON of a record into v.
func decode(r Record, v any) error {
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("coordinator's record %q: %w", r.Key, err)
	}
	return nil
}
