// Package sqlkv is a storage engine on a server that speaks PostgreSQL's protocol. Several
// processes, on several machines, can have one store open. The package is a module of its own, so
// that programs which do not use it do not compile the client.
//
//	db, err := jay.Open("postgres://ada@db.example.com/app", &jay.Options{Engine: new(sqlkv.Driver)})
//
// PostgreSQL is supported. The profiles for YugabyteDB and CockroachDB follow the documentation of
// these servers, and have never run on a genuine one.
//
// # What is stored
//
// A store is a schema with three tables. kv has the keys with their values. commits has a row for
// each commit: its number, which is one more than the number of the commit before, a random token,
// and the keys that the commit wrote. store has one row: the number of this layout, the ID of the
// store, and the features that the store uses.
//
// # How a commit is made
//
// Each process has one leader. The leader runs the waiting functions one after another. So the functions
// of a group share the commit and its sync. If their callers have said what they will read (see
// storage.Expect), the leader
//
//  1. locks the row of store, which makes the committers of all processes take turns, and reads these keys
//     and those that the groups before have read,
//  2. runs the functions, writes the keys and the row of commits, and commits.
//
// Each step is one round trip. If the callers have said nothing, or if the group before had to ask for much
// more, the leader runs the functions on a snapshot, whose commit number it knows. Then it
//
//  1. locks the row of store,
//  2. reads the rows of commits that are newer than its snapshot, and runs the functions again if one of those wrote a
//     key that the group has read, or a key in a range that it has walked over,
//  3. writes the keys and the row of commits, and commits.
//
// Steps 1 and 2 are one round trip, and step 3 is another one. After repeated conflicts, a group
// runs its functions while the leader holds the lock, so that the group commits in the end.
//
// The leader holds the lock until the commit is decided. If the connection is lost before the
// answer, the leader takes the lock on another connection and looks for its token. So it resolves
// an in-doubt commit.
//
// The engine deletes a row of commits that is older than Driver.Retention. A function that takes
// longer than that runs again.
package sqlkv
