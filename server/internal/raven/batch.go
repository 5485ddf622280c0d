package raven

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server/internal/serve"
)

// batchRoutes has the endpoint of batches of commands.
var batchRoutes = []*serve.Route{
	{Method: "POST", Path: "{D}/bulk_docs", Run: bulkDocs, Body: true, Stores: true, Parts: true, Once: true, Takes: "disableAtomicDocumentWrites numberOfReplicasToWaitFor throwOnTimeoutInWaitForReplicas"},
}

// bulkDocs carries out a batch of commands as one transaction.
func bulkDocs(c *serve.Call) error {
	if err := checkReplicas(c); err != nil {
		return err
	}
	if err := splitParts(c); err != nil {
		return err
	}
	var request batchRequest
	if err := c.Decode(&request); err != nil {
		return err
	}
	clusterWide := false
	switch request.TransactionMode {
	case "", "SingleNode":
	case "ClusterWide":
		clusterWide = true
	default:
		return serve.BadRequest("TransactionMode is SingleNode or ClusterWide, not %.100q", request.TransactionMode)
	}
	if _, given := c.Params.Find("disableAtomicDocumentWrites"); given && !clusterWide {
		return serve.BadRequest("the parameter disableAtomicDocumentWrites has no effect without the TransactionMode ClusterWide")
	}
	if len(request.Commands) == 0 {
		return serve.BadRequest("Commands has no command")
	}
	if len(request.Commands) > maxCommands {
		return serve.TooLarge("a batch has at most %d commands, not %d", maxCommands, len(request.Commands))
	}
	for i := range request.Commands {
		if err := request.Commands[i].checkMembers(); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
	}
	replies := int64(0)
	for i := range request.Commands {
		replies += 512
		if id := request.Commands[i].ID; id != nil {
			replies += 2 * int64(len(*id))
		}
	}
	if err := c.Take(replies); err != nil { // before the commit, so that a refusal is true
		return err
	}
	if clusterWide || slices.ContainsFunc(request.Commands, func(cmd command) bool { return cmd.ID != nil && fromCounter(*cmd.ID) }) {
		c.BoundMajority()
	}
	if clusterWide {
		return clusterBatch(c, &request)
	}
	if request.needsTransaction() {
		return bulkTransaction(c, &request)
	}
	if len(c.Parts) > 0 {
		return serve.BadRequest("the batch has %d streams, and no AttachmentPUT", len(c.Parts))
	}
	var b jay.Batch
	for i := range request.Commands {
		if err := request.Commands[i].addTo(&b); err != nil {
			return fmt.Errorf("command %d: %w", i, err)
		}
	}
	written, err := c.DB.Apply(c.Ctx, &b, c.Once()...)
	if err != nil {
		return err
	}
	reply := []byte(`{"Results":[`)
	for i := range written {
		if i > 0 {
			reply = append(reply, ',')
		}
		reply = append(reply, request.Commands[i].result(&written[i])...)
	}
	return c.Text(http.StatusCreated, append(reply, "]}"...))
}

// checkReplicas refuses requests to wait for replicas, as there are none. A majority of
// one node is that node. There is no need to wait for indexes: they are always up to date.
func checkReplicas(c *serve.Call) error {
	fails, err := true, error(nil)
	if c.Params.Get("throwOnTimeoutInWaitForReplicas") != "" {
		fails, err = c.Params.Flag("throwOnTimeoutInWaitForReplicas")
	}
	if err != nil || c.Params.Get("numberOfReplicasToWaitFor") == "majority" {
		return err
	}
	replicas, err := c.Params.Count("numberOfReplicasToWaitFor", 0)
	if err != nil || replicas == 0 || !fails {
		return err
	}
	return serve.NotSupported("POST %s: waiting for replicas: there are none", c.Route.Path)
}
