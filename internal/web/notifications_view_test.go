package web

import (
	"svc/internal/notify"
	"svc/internal/project"
	"svc/internal/user"
)

// notificationContents are the pages of notification settings.
func notificationContents() []content {
	u := &user.User{ID: 1, Username: "ada", Name: "Ada"}
	p := &project.Project{ID: 1, Name: "P", FullPath: "g/p", Namespace: project.Namespace{FullName: "G", FullPath: "g"}}
	g := &project.Namespace{ID: 1, Name: "G", FullPath: "g", FullName: "G"}
	bad := form{Errors: map[string][]string{"notification_email": {"is wrong"}}, Error: "no"}
	all := eventGroups(notify.Setting{})
	return []content{
		notificationsPage{Form: bad, Levels: levelChoices(true), Groups: all, Emails: []option{{"a", "a"}}, User: u,
			Places: []notify.PlaceSetting{{Setting: notify.Setting{Level: notify.Watch}, Group: g}, {Place: p}}},
		notificationsPage{User: u},
		placeNotificationsPage{P: &head{Project: p}, Name: "P", Action: "/x", Levels: levelChoices(false), Groups: all}, placeNotificationsPage{G: &groupHead{Group: g}},
		leavePage{Leaving: &notify.Unsubscription{Name: "x", Project: "P"}, Action: "/x"}, leavePage{Leaving: &notify.Unsubscription{}, Done: true},
	}
}
