module github.com/jaydb/jay/schema/jsonschema

go 1.26.0

require (
	github.com/jaydb/jay v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	golang.org/x/text v0.41.0
)

replace github.com/jaydb/jay => ../../
