package sqlkv

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// schemaParameter is the parameter of a store's name that says in which schema its tables are.
const schemaParameter = "jay_schema"

// defaultSchema is that of a name without one.
const defaultSchema = "jay"

// unfinished is behind the schema of a store that is being made.
const unfinished = "_unfinished"

// schemaRule is for names of schemas that need no quotes in any tool, with room for what is behind
// them while a store is made.
var schemaRule = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// address says where a store is.
type address struct {
	config *pgx.ConnConfig
	schema string
	name   string // as it was given; may hold a password
}

// newAddress parses the name of a store: a URL such as
// postgres://ada@db.example.com:5432/app?jay_schema=jay, or the same as key=value pairs. What it
// leaves out comes from the environment variables and files of PostgreSQL's own clients.
func newAddress(name string) (address, error) {
	config, err := pgx.ParseConfig(name)
	if err != nil {
		// The error of the parser quotes the name, and a password might be in it that the parser did not find.
		return address{}, &Error{Address: "the name of the store", Kind: ErrAddress,
			Do: "write postgres://USER@HOST:PORT/DATABASE, and keep the password in PGPASSWORD or in ~/.pgpass"}
	}
	a := address{config: config, schema: defaultSchema, name: name}
	if schema, given := config.RuntimeParams[schemaParameter]; given {
		delete(config.RuntimeParams, schemaParameter)
		a.schema = schema
	}
	if bare := strings.TrimSuffix(a.schema, unfinished); !schemaRule.MatchString(bare) {
		return address{}, &Error{Address: a.String(), Kind: ErrAddress,
			Cause: fmt.Errorf("the schema %.60q does not match %s", a.schema, schemaRule),
			Do:    "name another one by " + schemaParameter}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "jay"
	}
	return a, nil
}

// String returns the address for messages, without a password.
func (a address) String() string {
	return fmt.Sprintf("%s@%s/%s schema %s", a.config.User, strings.Join(a.hosts(), ","), a.config.Database, a.schema)
}

// Shown implements storage.Namer.
func (d *Driver) Shown(name string) string {
	a, err := newAddress(name)
	if err != nil {
		return "a store on a server"
	}
	return a.String()
}

// inSchema returns the name of the store in another schema of the same database.
func (a address) inSchema(schema string) (string, error) {
	if !strings.HasPrefix(a.name, "postgres://") && !strings.HasPrefix(a.name, "postgresql://") {
		return a.name + " " + schemaParameter + "=" + schema, nil
	}
	u, err := url.Parse(a.name)
	if err != nil {
		return "", &Error{Address: a.String(), Kind: ErrAddress, Do: "write a URL as RFC 3986 has it"}
	}
	q := u.Query()
	q.Set(schemaParameter, schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}
