// Package ids decides which ID a document gets.
//
// [Classify] reads the last character of a requested ID and chooses one of five
// strategies, which makes the final ID:
//
//	requested       strategy     final
//	users/ann       semantic     users/ann
//	"" or blank     GUID         3f2b8c1e-6d0a-4f0e-9a59-0a2f4f6f9f10
//	users/          server-side  users/0000000000000000042-A
//	users|          identity     users/7
//	(none given)    HiLo         users/33-A
//
// A [Resolver] makes the final ID. It keeps no state of its own: server-side
// IDs and identities come from a [Counters] that belongs to the transaction
// that writes the document, so that a number commits with its document or not
// at all. HiLo IDs come from a [Client], which draws numbers from ranges. A
// [Source] grants a range durably before any of its numbers is used.
//
// [Fold] returns the case-folded ID under which a document is looked up, and
// [Rules] hold the restrictions on IDs. [CollectionName] and [Prefix] derive
// names from Go types.
//
// Resolver, Client and all functions are safe for concurrent use; [Marks] and
// [Pace] are plain values that the caller guards.
//
// The package imports no storage and writes no bytes. The behaviour that it
// shares with RavenDB is described in docs/ids.md.
//
// The package is public and follows the module's version: until 1.0 its API may
// change. What [Fold] and [Plural] return does not: stored keys and the names of
// collections depend on it.
package ids
