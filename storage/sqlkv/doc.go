// Package sqlkv is a storage engine on a server that speaks PostgreSQL's protocol: several processes, on
// several machines, have one store open. It is a module of its own, so that no other user of Jay compiles the client.
//
//	db, err := jay.Open("postgres://ada@db.example.com/app", &jay.Options{Engine: new(sqlkv.Driver)})
//
// PostgreSQL is supported. The profiles for YugabyteDB and CockroachDB keep to what those document, and have never run on
// a genuine server of theirs.
//
// # What is stored
//
// A store is a schema with three tables. kv has the keys with their values. commits has a row for each commit: its number,
// which is one more than that of the commit before, a random token, and the keys that it wrote. store has one row: the
// number of this layout, the ID of the store, the features that it uses.
//
// # How a commit is made
//
// Each process has one leader, which runs the waiting functions one after another on one snapshot, whose
// commit number it knows. So the functions of a group share the commit and its sync. Then the leader
//
//  1. locks the row of store, which makes the committers of all processes take turns,
//  2. reads the rows of commits that are newer than its snapshot, and runs the functions again if one of those wrote a
//     key that the group has read, or a key in a range that it has walked over,
//  3. writes the keys and the row of commits, and commits.
//
// Steps 1 and 2 are one round trip, and step 3 is another one. A group that meets conflicts again and again runs
// its functions while it holds the lock, so that it commits in the end.
//
// The lock is held until the commit is decided. So if the connection is lost before the answer, the leader takes the lock on
// another connection and looks for its token: an unknown outcome becomes known.
//
// A row of commits is deleted when it is older than Driver.Retention. A function that takes longer runs again.
package sqlkv
