package api_test

import (
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/db/dbtest"
)

// eachForRoles runs a table of roles, thousands of requests one after the
// other. Under the race detector one kind of database is enough: there is
// little to find in requests that follow each other, and it takes minutes.
// scripts/test runs the tables once more without it, on both.
func eachForRoles(t *testing.T, f func(t *testing.T, s *apptest.Server)) {
	t.Helper()
	if !underRace {
		apptest.Each(t, f)
		return
	}
	f(t, apptest.Start(t, dbtest.SQLite(t)))
}
