// Package ids decides which ID a document gets.
//
// [Classify] tells from the last character of a requested ID which of the five
// strategies makes the final one:
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
// at all. HiLo IDs come from a [Client], which draws them from ranges that a
// [Source] granted durably before the first number is seen.
//
// [Fold] gives the form of an ID under which it is looked up, [Rules] say what
// an ID may look like, and naming.go derives collection names and prefixes
// from type names.
//
// The package imports no storage. What it knows about RavenDB's behaviour is
// cited as "document identifiers" with the number of the rule in docs/ids.md.
package ids
