package own

import "slices"

// Routes lists the endpoints of Jay's own API. Each list stands beside its functions.
// docs/server/endpoints.md has the same table.
var Routes = slices.Concat(
	serverRoutes,
	operationRoutes,
	nodeRoutes,
	queryRoutes,
	collectionRoutes,
	indexRoutes,
	computedRoutes,
	schemaRoutes,
	previewRoutes,
	numberRoutes,
	figureRoutes,
	dataRoutes,
	rowRoutes,
	documentRoutes,
	fieldRoutes,
	exportRoutes,
	importRoutes,
	rejectRoutes,
	downloadRoutes,
	changeRoutes,
	liveRoutes,
	followRoutes,
	lookRoutes,
)
