package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestJobsOfBlockedUsers checks that runners do not get the jobs of a user who was blocked
// or banned after the pipeline was created.
func TestJobsOfBlockedUsers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}\n")
		var me struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /user", As: b.owner, Status: 200}).JSON(t, &me)
		for block, unblock := range map[string]string{"block": "unblock", "ban": "unban"} {
			pipeline := b.pipeline(b.project)
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/%s", me.ID, block), As: apptest.RootToken, Status: 201})
			b.take(b.runner, 204, "")
			s.Check(t, apptest.Call{Do: "GET " + b.at("/pipelines/%d/jobs", pipeline), As: apptest.RootToken, Status: 200, Want: `[{"status":"failed","failure_reason":"user_blocked"}]`})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/%s", me.ID, unblock), As: apptest.RootToken, Status: 201})
		}
		b.pipeline(b.project)
		b.run()
	})
}
