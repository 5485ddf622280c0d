// Package metadata converts documents between the JSON of callers and the
// stored record: [Scan] validates JSON and takes its `@metadata` object out,
// [Parse] reads that object, [Header] encodes and decodes the record in which
// body and metadata are stored, and [AppendDocument] writes the JSON that is
// returned to callers.
//
// A body is validated once, by Scan. All later readers rely on it: gjson, for
// one, never reports malformed input.
//
// All functions are safe for concurrent use. The stored bytes are described at
// [Header] and in docs/format.md.
//
// The package is public and follows the module's version: until 1.0 its API may change. The record
// does not change without a new number of the file format.
package metadata
