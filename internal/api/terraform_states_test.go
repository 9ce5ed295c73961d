package api_test

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"svc/internal/app/apptest"
)

// TestTerraformStates sends the requests of Terraform's http backend.
func TestTerraformStates(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		root := s.Token(t, 1, "api")
		const state = `{"version":4,"serial":%d,"lineage":"x","resources":[{"serial":99,"text":"\"serial\":98,{"}]}`
		one, two := fmt.Sprintf(state, 1), fmt.Sprintf(state, 2)
		md5Of := func(text string) map[string]string {
			sum := md5.Sum([]byte(text))
			return map[string]string{"Content-MD5": base64.StdEncoding.EncodeToString(sum[:])}
		}
		at := b.at("/terraform/state/prod.eu")
		lock := `{"ID":"11-22","Operation":"OperationTypePlan","Info":"","Who":"ada@box","Version":"1.9.0","Created":"2026-01-02T03:04:05.000006Z","Path":""}`
		s.Table(t, []apptest.Call{
			{Name: "none yet", Do: "GET " + at, As: b.owner, Status: 404},
			{Name: "empty body", Do: "POST " + at, As: b.owner, Status: 204},
			{Name: "not a state", Do: "POST " + at, As: b.owner, JSON: `[{"serial":1}]`, Status: 400},
			{Name: "no serial", Do: "POST " + at, As: b.owner, JSON: `{"version":4}`, Status: 400},
			{Name: "serial is a text", Do: "POST " + at, As: b.owner, JSON: `{"serial":"4"}`, Status: 400},
			{Name: "negative", Do: "POST " + at, As: b.owner, JSON: `{"serial":-4}`, Status: 400},
			{Name: "cut off", Do: "POST " + at, As: b.owner, JSON: `{"serial":4`, Status: 400},
			{Name: "damaged", Do: "POST " + at, As: b.owner, JSON: one, Header: md5Of(two), Status: 400},
			{Name: "odd digest", Do: "POST " + at, As: b.owner, JSON: one, Header: map[string]string{"Content-MD5": "x"}, Status: 400},
			{Name: "still none", Do: "GET " + at, As: b.owner, Status: 404},
			{Name: "save", Do: "POST " + at, As: b.owner, JSON: one, Header: md5Of(one), Status: 200},
			{Name: "read", Do: "GET " + at, As: b.owner, Status: 200, Text: one},
			{Name: "lock", Do: "POST " + at + "/lock", As: b.owner, JSON: lock, Status: 200, Want: `{"ID":"11-22","Who":"ada@box"}`},
			{Name: "lock again", Do: "POST " + at + "/lock", As: b.owner, JSON: strings.Replace(lock, "11-22", "33", 1), Status: 409,
				Want: `{"ID":"11-22","Operation":"OperationTypePlan","Who":"ada@box","Version":"1.9.0","Created":"<any>","Path":"","Info":""}`},
			{Name: "lock without ID", Do: "POST " + at + "/lock", As: b.owner, JSON: `{}`, Status: 400},
			{Name: "save without the lock", Do: "POST " + at, As: b.owner, JSON: two, Status: 409},
			{Name: "save with another lock", Do: "POST " + at + "?ID=33", As: b.owner, JSON: two, Status: 409},
			{Name: "delete while locked", Do: "DELETE " + at, As: b.owner, Status: 409},
			{Name: "save with the lock", Do: "POST " + at + "?ID=11-22", As: b.owner, JSON: two, Status: 200},
			{Name: "unlock with another ID", Do: "DELETE " + at + "/lock", As: b.owner, JSON: `{"ID":"33"}`, Status: 409},
			{Name: "unlock", Do: "DELETE " + at + "/lock", As: b.owner, JSON: lock, Status: 200},
			{Name: "a lock that is not there", Do: "POST " + at + "?ID=11-22", As: b.owner, JSON: two, Status: 409},
			{Name: "read the second", Do: "GET " + at, As: b.owner, Status: 200, Text: two},
			{Name: "read the first version", Do: "GET " + at + "/versions/1", As: b.owner, Status: 200, Text: one},
			{Name: "no such version", Do: "GET " + at + "/versions/7", As: b.owner, Status: 404},
			{Name: "odd version", Do: "GET " + at + "/versions/x", As: b.owner, Status: 400},
			{Name: "serial taken", Do: "POST " + at, As: b.owner, JSON: `{"serial":2}`, Status: 422},
			{Name: "the first again", Do: "POST " + at, As: b.owner, JSON: one, Status: 200},
			{Name: "is the current one", Do: "GET " + at, As: b.owner, Status: 200, Text: one},
			{Name: "delete a version", Do: "DELETE " + at + "/versions/1", As: b.owner, Status: 204},
			{Name: "the second is current", Do: "GET " + at, As: b.owner, Status: 200, Text: two},
			{Name: "a slash in the name", Do: "POST " + b.at("/terraform/state/a%%2Fb"), As: b.owner, JSON: one, Status: 400},
			{Name: "a long name", Do: "POST " + b.at("/terraform/state/%s", strings.Repeat("x", 256)), As: b.owner, JSON: one, Status: 400},
			{Name: "a long ID", Do: "POST " + at + "/lock", As: b.owner, JSON: `{"ID":"` + strings.Repeat("x", 256) + `"}`, Status: 400},
			{Name: "lock a new one", Do: "POST " + b.at("/terraform/state/new/lock"), As: b.owner, JSON: lock, Status: 200},
			{Name: "no content", Do: "GET " + b.at("/terraform/state/new"), As: b.owner, Status: 204},
			{Name: "force unlock", Do: "DELETE " + b.at("/terraform/state/new/lock"), As: b.owner, Status: 200},
			{Name: "anonymous", Do: "GET " + at, Status: 401},
			{Name: "limit", Do: "PUT /application/settings", As: root, JSON: `{"max_terraform_state_size_bytes":50}`, Status: 200},
			{Name: "too large", Do: "POST " + at, As: b.owner, JSON: fmt.Sprintf(state, 3), Status: 413},
			{Name: "small enough", Do: "POST " + at, As: b.owner, JSON: `{"serial":3}`, Status: 200},
			{Name: "no limit", Do: "PUT /application/settings", As: root, JSON: `{"max_terraform_state_size_bytes":0}`, Status: 200},
			{Name: "switched off", Do: "PUT " + b.at(""), As: b.owner, JSON: `{"infrastructure_access_level":"disabled"}`, Status: 200},
			{Name: "hidden", Do: "GET " + at, As: b.owner, Status: 404},
			{Name: "switched on", Do: "PUT " + b.at(""), As: b.owner, JSON: `{"infrastructure_access_level":"enabled"}`, Status: 200},
		})
		b.pipeline(b.project)
		j := b.run()
		basic := map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("gitlab-ci-token:"+j.Token))}
		pat := map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:"+b.owner))}
		other := b.newProject("other", "a: {script: [x]}")
		s.Table(t, []apptest.Call{
			{Name: "job reads", Do: "GET " + at, Header: basic, Status: 200, Text: `{"serial":3}`},
			{Name: "job saves", Do: "POST " + at, Header: basic, JSON: `{"serial":4}`, Status: 200},
			{Name: "job in another project", Do: "POST " + fmt.Sprintf("/projects/%d/terraform/state/x", other), Header: basic, JSON: `{"serial":4}`, Status: 404},
			{Name: "access token", Do: "GET " + at, Header: pat, Status: 200},
			{Name: "delete", Do: "DELETE " + at, Header: pat, Status: 200},
			{Name: "gone", Do: "GET " + at, Header: pat, Status: 404},
		})
		large := fmt.Sprintf(`{"serial":1,"text":"%s"}`, strings.Repeat("0123456789", 50_000))
		s.Check(t, apptest.Call{Do: "POST " + at, As: b.owner, JSON: large, Status: 200})
		if got := s.Check(t, apptest.Call{Do: "GET " + at, As: b.owner, Status: 200}); string(got.Body) != large {
			t.Error("a large state came back changed")
		}
		// An incomplete body changes nothing.
		r, err := http.NewRequest("POST", s.URL+"/api/v4"+at, io.LimitReader(strings.NewReader(`{"serial":2}                 `), 12))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 20
		r.Header.Set("Private-Token", b.owner)
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
			if res.StatusCode < 400 {
				t.Errorf("half a body: %d", res.StatusCode)
			}
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/versions/2", As: b.owner, Status: 404})
	})
}
