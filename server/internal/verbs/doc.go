// Package verbs has what both dialects of the server do to a database: it reads the parameters
// of queries and the definitions of indexes, patches documents by scripts, and changes what
// a query finds.
package verbs
