package core

import (
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/fulltext"
	"github.com/jaydb/jay/internal/groups"
	"github.com/jaydb/jay/internal/places"
	"github.com/jaydb/jay/internal/vectors"
)

// Kinds of indexes that lie in rooms of their own are made known here: no database is open before.
var (
	_ = catalog.Register(fulltext.Name, fulltext.Kind)
	_ = catalog.Register(groups.Name, groups.Kind)
	_ = catalog.Register(groups.EndsName, groups.EndsKind)
	_ = catalog.Register(places.Name, places.Kind)
	_ = catalog.Register(vectors.Name, vectors.Kind)
)
