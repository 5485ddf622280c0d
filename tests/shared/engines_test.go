package shared_test

import _ "github.com/jaydb/jay/tests/onpostgres" // JAY_ENGINE=postgres
