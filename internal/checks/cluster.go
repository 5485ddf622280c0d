package checks

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
)

// BeatCluster is one heartbeat.
func BeatCluster(db any) error { return parts.Of(db).Writer.Cluster.Beat(context.Background()) }

// IdentitiesWaiting returns how many callers wait for numbers of an identity.
func IdentitiesWaiting(db any, name string) int { return parts.Of(db).Writer.Cluster.Waiting(name) }

// LostNumbers returns the numbers of an identity that were reserved here and that no
// document has, as far as that is recorded.
func LostNumbers(db any, name string) []int64 {
	var out []int64
	value, closer, err := Engine(db).Get(format.LostKey(name))
	if err != nil {
		return nil
	}
	lost, err := format.DecodeLost(value)
	if err = errors.Join(err, closer.Close()); err != nil {
		panic(err)
	}
	for _, s := range lost.Spans {
		for n := s[0]; n <= s[1]; n++ {
			out = append(out, n)
		}
	}
	return out
}

// AwaitLost returns when the lost numbers of identities that are known are recorded.
func AwaitLost(db any) { parts.Of(db).Writer.Cluster.AwaitLost() }

// FreeNumbers returns how many numbers of an identity wait for the next write.
func FreeNumbers(db any, name string) int64 { return parts.Of(db).Writer.Cluster.Free()[name] }

// Undecided returns how many commits the coordinator of the cluster has not decided.
func Undecided(db any) int { return parts.Of(db).Writer.Undecided() }
