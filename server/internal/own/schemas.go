package own

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/server/internal/serve"
)

// schemaRoutes are the endpoints of the schemas of collections.
var schemaRoutes = []*serve.Route{
	{Method: "GET", Path: "{J}/schemas", Run: getSchemas},
	{Method: "GET", Path: "{J}/schemas/rule", Run: getSchema, Takes: "collection"},
	{Method: "PUT", Path: "{J}/schemas/rule", Run: putSchema, Body: true, Needs: serve.AdminRight, Takes: "collection mode"},
	{Method: "DELETE", Path: "{J}/schemas/rule", Run: removeSchema, Needs: serve.AdminRight, Takes: "collection"},
	{Method: "POST", Path: "{J}/schemas/check", Run: checkSchema, Body: true, Timed: true, Needs: serve.ReadRight, Takes: "collection"},
	{Method: "POST", Path: "{J}/schemas/validate", Run: validateDocument, Body: true, Needs: serve.ReadRight, Takes: "collection"},
}

// listedSchema is a rule in a list.
type listedSchema struct {
	Collection string      `json:"collection"`
	Mode       schema.Mode `json:"mode"`
	Number     uint64      `json:"number"`
	Bytes      int         `json:"bytes"` // of the schema

	// These are of the report on the documents that were there when the rule was set.
	Running   bool  `json:"running,omitempty"`
	Documents int64 `json:"documents"`
	Violating int64 `json:"violating"`
}

// getSchemas replies with the rules of the database, without the texts of their schemas.
func getSchemas(c *serve.Call) error {
	rules := c.DB.Definitions().Schemas()
	all, err := rules.List(c.Ctx)
	if err != nil {
		return err
	}
	size := 0
	for _, rule := range all {
		size += len(rule.Schema)
	}
	if err := c.Take(int64(size)); err != nil {
		return err
	}
	list := make([]listedSchema, 0, len(all))
	for _, rule := range all {
		report, err := rules.Report(c.Ctx, rule.Collection)
		if errors.Is(err, jay.ErrNotFound) { // it was removed meanwhile
			continue
		}
		if err != nil {
			return err
		}
		list = append(list, listedSchema{rule.Collection, rule.Mode, rule.Number, len(rule.Schema), report.Running, report.Documents, report.Violating})
	}
	return c.JSON(http.StatusOK, map[string]any{"schemas": list})
}

// getSchema replies with the rule of a collection, and the report on its documents.
func getSchema(c *serve.Call) error {
	if err := c.Take(2 * schema.MaxBytes); err != nil { // the text, and the reply
		return err
	}
	rules, collection := c.DB.Definitions().Schemas(), c.Params.Get("collection")
	rule, err := rules.Get(c.Ctx, collection)
	if err != nil {
		return withoutSchema(err)
	}
	report, err := rules.Report(c.Ctx, collection)
	if err != nil {
		return withoutSchema(err)
	}
	return c.JSON(http.StatusOK, struct {
		schema.Rule
		Report schema.Report `json:"report"`
	}{rule, report})
}

// withoutSchema makes the error for a collection that has no rule of ErrNotFound.
func withoutSchema(err error) error {
	if errors.Is(err, jay.ErrNotFound) {
		return &serve.Problem{Status: http.StatusNotFound, Kind: serve.TypeBadRequest, Message: "the collection has no schema"}
	}
	return err
}

// givenSchema returns the schema in the body, or that of the collection if there is no body.
func givenSchema(c *serve.Call, mode schema.Mode) (schema.Rule, error) {
	rule := schema.Rule{Collection: c.Params.Get("collection"), Mode: mode, Schema: c.Body}
	if len(bytes.TrimSpace(c.Body)) > 0 {
		if len(c.Body) > schema.MaxBytes { // it is refused before anything is made of it
			return rule, nil
		}
		var whole any
		if err := c.PayFor(c.Body, &whole); err != nil { // as a compiler decodes it
			return rule, err
		}
		return rule, c.Decode(&rule.Schema)
	}
	there, err := c.DB.Definitions().Schemas().Get(c.Ctx, rule.Collection)
	rule.Collection, rule.Schema = there.Collection, there.Schema
	return rule, withoutSchema(err)
}

// putSchema gives a collection a schema or, without a body, its schema another mode. The documents that are there are validated after the reply.
func putSchema(c *serve.Call) error {
	mode := schema.Refuse
	if text, given := c.Params.Find("mode"); given {
		mode = schema.Mode(text)
	}
	rule, err := givenSchema(c, mode)
	if err != nil {
		return err
	}
	if err := c.DB.Definitions().Schemas().Set(c.Ctx, rule); err != nil {
		return err
	}
	rule, err = c.DB.Definitions().Schemas().Get(c.Ctx, rule.Collection)
	if err != nil {
		return withoutSchema(err) // removed meanwhile
	}
	return c.JSON(http.StatusCreated, map[string]any{"collection": rule.Collection, "mode": rule.Mode, "number": rule.Number})
}

// removeSchema removes the rule of a collection.
func removeSchema(c *serve.Call) error {
	if err := c.DB.Definitions().Schemas().Remove(c.Ctx, c.Params.Get("collection")); err != nil {
		return withoutSchema(err)
	}
	return c.Empty(http.StatusNoContent)
}

// checkSchema validates the documents of a collection against the schema in the body or, without a body, that of the collection. It stores nothing.
func checkSchema(c *serve.Call) error {
	rule, err := givenSchema(c, schema.Off)
	if err != nil {
		return err
	}
	report, err := c.DB.Definitions().Schemas().Check(c.Ctx, rule, nil)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, report)
}

// validateDocument replies with what the document in the body violates in the schema of a collection. It stores nothing. A collection without a
// schema has no mode in the reply, and a schema that is off finds nothing.
func validateDocument(c *serve.Call) error {
	var whole any
	if err := c.PayFor(c.Body, &whole); err != nil { // as a validator decodes it
		return err
	}
	if err := c.Take(schema.MaxBytes); err != nil { // the rule
		return err
	}
	rules, collection := c.DB.Definitions().Schemas(), c.Params.Get("collection")
	if collection == "" {
		return serve.BadRequest("POST {J}/schemas/validate needs the parameter collection")
	}
	rule, err := rules.Get(c.Ctx, collection)
	if errors.Is(err, jay.ErrNotFound) {
		rule.Collection, err = collection, nil
	}
	if err != nil {
		return err
	}
	reply := struct {
		Collection string             `json:"collection"`
		Mode       schema.Mode        `json:"mode,omitempty"`
		Count      int                `json:"count"`
		Violations []schema.Violation `json:"violations"`
	}{Collection: rule.Collection, Mode: rule.Mode, Violations: []schema.Violation{}}
	err = rules.Validate(c.Ctx, collection, c.Body)
	var violated *schema.Error
	if errors.As(err, &violated) {
		reply.Count, reply.Violations, err = violated.Count, serve.Listed(violated.Violations), nil
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, reply)
}
