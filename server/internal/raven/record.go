package raven

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/jaydb/jay/server/internal/serve"
)

// databaseGiven has the members of a database record that creates a database. The server
// keeps some: see kept. The last ones are features that it does not have, which are
// refused unless they are empty, like members that it does not know.
type databaseGiven struct {
	_ struct{} `unknown:"empty"`

	DatabaseName  *string
	DataDirectory *string
	DatabaseState *string
	LockMode      *string
	Disabled      *bool
	Encrypted     *bool
	Settings      serve.Object[*string]
	Expiration    json.RawMessage
	Refresh       json.RawMessage
	Sharding      json.RawMessage

	ConflictSolverConfig json.RawMessage `ignored:"there are no conflicts"`
	DatabaseTopology     json.RawMessage `ignored:"a database is on one node"`
	Topology             json.RawMessage `ignored:"a database is on one node"`
	Etag                 json.RawMessage `ignored:"the server counts it"`
	EtagForBackup        json.RawMessage `ignored:"the server counts it"`

	refusedGiven
}

// refusedGiven has the members of a database record whose features are not there, or that
// have endpoints of their own.
type refusedGiven struct {
	Revisions, RevisionsForConflicts, RevisionsBin, Client, Studio, Indexes, IndexesHistory, AutoIndexes, RollingIndexes, Sorters, Analyzers, TimeSeries    json.RawMessage
	DocumentsCompression, DataArchival, PeriodicBackups, ExternalReplications, SinkPullReplications, HubPullReplications, Integrations                      json.RawMessage
	RavenConnectionStrings, SqlConnectionStrings, OlapConnectionStrings, ElasticSearchConnectionStrings, QueueConnectionStrings, SnowflakeConnectionStrings json.RawMessage
	RavenEtls, SqlEtls, OlapEtls, ElasticSearchEtls, QueueEtls, SnowflakeEtls, QueueSinks, DeletionInProgress, UnusedDatabaseIds, SupportedFeatures         json.RawMessage
}

// check refuses what the server does not heed.
func (g *databaseGiven) check() error {
	for _, one := range []struct {
		member  string
		asks    bool
		refusal string
	}{
		{"Encrypted", g.Encrypted != nil && *g.Encrypted, "encryption is not there"},
		{"Disabled", g.Disabled != nil && *g.Disabled, "a database cannot be disabled yet"},
		{"Sharding", len(g.Sharding) > 0 && string(g.Sharding) != "null", "sharding is not there"},
		{"DataDirectory", g.DataDirectory != nil && *g.DataDirectory != "", "databases are in the server's data directory"},
		{"LockMode", g.LockMode != nil && *g.LockMode != "" && *g.LockMode != "Unlock", "a database cannot be locked"},
		{"DatabaseState", g.DatabaseState != nil && *g.DatabaseState != "" && *g.DatabaseState != "Normal", "a new database has the state Normal"},
	} {
		if one.asks {
			return serve.NotSupported("the database record has %s: %s", one.member, one.refusal)
		}
	}
	for name, value := range g.Settings {
		if !settingHolds(name, value) {
			return serve.NotSupported("the database record has the setting %.100s, which is not there", name)
		}
	}
	refused := reflect.ValueOf(g.refusedGiven)
	for i := range refused.NumField() {
		if !serve.IsEmpty(refused.Field(i).Interface().(json.RawMessage)) {
			return serve.NotSupported("the database record has %s: it is not there, or has an endpoint of its own", refused.Type().Field(i).Name)
		}
	}
	for _, d := range []*serve.Due{&serve.Expiration, &serve.Refresh} {
		if _, err := d.InRecord(g.kept()); err != nil {
			return err
		}
	}
	return nil
}

// kept returns what the server stores of the record, by the members' names.
func (g *databaseGiven) kept() map[string]json.RawMessage {
	out := make(map[string]json.RawMessage)
	for name, text := range map[string]json.RawMessage{"ConflictSolverConfig": g.ConflictSolverConfig, "Expiration": g.Expiration, "Refresh": g.Refresh} {
		if len(text) > 0 {
			out[name] = text
		}
	}
	if g.Settings != nil {
		out["Settings"] = serve.MustJSON(g.Settings)
	}
	return out
}

// clientGiven has the members of a client configuration, which clients heed.
type clientGiven struct {
	Disabled                      *bool
	MaxNumberOfRequestsPerSession *int64
	ReadBalanceBehavior           *string
	LoadBalanceBehavior           *string
	LoadBalancerContextSeed       *int64
	IdentityPartsSeparator        *string

	Etag json.RawMessage `ignored:"the server counts it"`
}

// check refuses a configuration that clients would not understand, or that would need more
// than clients that heed it.
func (g *clientGiven) check() error {
	if s := g.IdentityPartsSeparator; s != nil && *s != "/" {
		return serve.NotSupported("IdentityPartsSeparator %.20q is not there: the parts of an ID are separated by '/'", *s)
	}
	if n := g.MaxNumberOfRequestsPerSession; n != nil && *n <= 0 {
		return serve.BadRequest("MaxNumberOfRequestsPerSession must be above 0, not %d", *n)
	}
	for _, one := range []struct {
		member string
		value  *string
		words  []string
	}{{"ReadBalanceBehavior", g.ReadBalanceBehavior, []string{"None", "RoundRobin", "FastestNode"}}, {"LoadBalanceBehavior", g.LoadBalanceBehavior, []string{"None", "UseSessionContext"}}} {
		if one.value != nil && !slices.Contains(one.words, *one.value) {
			return serve.BadRequest("%s is one of %v, not %.50q", one.member, one.words, *one.value)
		}
	}
	return nil
}
