package api_test

import "svc/internal/project"

// notificationRows are the rows of notification settings of projects and groups,
// which users set for themselves.
var notificationRows = func() map[string]ciRow {
	rows := map[string]ciRow{}
	for _, at := range []string{"/projects/{id}", "/groups/{id}"} {
		rows["GET "+at+"/notification_settings"] = doneBy(project.NoAccess, "/notification_settings", "", 200)
		rows["PUT "+at+"/notification_settings"] = doneBy(project.NoAccess, "/notification_settings", `{"level":"watch"}`, 200)
	}
	return rows
}()

var (
	notificationRoles = rowRoles(notificationRows, map[string]role{
		"GET /notification_settings": ownRead("GET /notification_settings"),
		"PUT /notification_settings": own("PUT /notification_settings", `{"level":"watch"}`, 200),
	})
	notificationPlaceRoles = rowPlaceRoles(notificationRows)
)
