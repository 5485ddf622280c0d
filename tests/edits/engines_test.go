package edits_test

import _ "github.com/jaydb/jay/tests/internal/onpostgres" // JAY_ENGINE=postgres
