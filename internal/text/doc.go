// Package text decides what the words of a text are: which parts of it are words, what each is stored and looked for as, and
// what a search for words means.
//
// An [Analyzer] makes tokens of a text; documents and searches go through the same one. A [Search] is parsed of what people
// type, such as
//
//	oak tre* "fallen leaves" -rotten
//
// and tells of the tokens of a document whether it is found, and by which of them. Nothing here knows of indexes: an
// index of words must find what a Search finds in each document by itself.
//
// All work is bounded by the length of what is given: a text is read once, and a search has at most [MaxClauses] clauses. Analyzers
// and parsed searches are immutable, and safe for concurrent use.
package text
