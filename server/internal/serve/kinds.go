package serve

// Kinds of the definitions that the server keeps in each database: see jay.Definitions. Part of what is on disk: must
// not change.
const (
	IndexKind         = "raven-index"         // by the name of the index
	ConfigurationKind = "raven-configuration" // ClientConfiguration, and the names of Expiration and Refresh
	DatabaseKind      = "raven-database"      // of a store that several servers have open: what their clients know the database by
)

// ClientConfiguration is the name of the configuration for clients.
const ClientConfiguration = "client"

// MaxConfigurationBytes bounds a configuration of a database.
const MaxConfigurationBytes = 64 << 10
