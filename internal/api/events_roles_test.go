package api_test

// eventRoles are the rows of the lists of events.
var eventRoles = map[string]role{
	"GET /events":               userRead("GET /events?scope=all"),
	"GET /users/{id}/events":    userRead("GET /users/{user}/events"),
	"GET /projects/{id}/events": openAPI("GET /projects/{project}/events"),
}

// eventPlaceRoles are the rows of the lists of events for members.
var eventPlaceRoles = map[string]placeRole{
	"GET /projects/{id}/events": {do: "GET {at}/events", open: true, ok: 200},
}
