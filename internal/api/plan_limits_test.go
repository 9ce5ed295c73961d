package api_test

import (
	"testing"

	"svc/internal/app/apptest"
)

func TestPlanLimits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		const at = "/application/plan_limits"
		s.Table(t, []apptest.Call{
			{Do: "GET " + at, Status: 401},
			{Do: "GET " + at, As: alice, Status: 403},
			{Do: "PUT " + at + "?plan_name=default&npm_max_file_size=1048576", As: alice, Status: 403},
			{Name: "defaults", Do: "GET " + at, As: root, Status: 200,
				Want: `{"ci_instance_level_variables":100,"generic_packages_max_file_size":5368709120,"npm_max_file_size":524288000,"pypi_max_file_size":3221225472}`},
			{Name: "another plan", Do: "GET " + at + "?plan_name=gold", As: root, Status: 400, Want: `{"error":"plan_name does not have a valid value"}`},
			{Name: "no plan", Do: "PUT " + at, As: root, JSON: `{"npm_max_file_size":1048576}`, Status: 400, Want: `{"error":"plan_name is missing"}`},
			{Name: "half a megabyte", Do: "PUT " + at, As: root, JSON: `{"plan_name":"default","npm_max_file_size":1000}`, Status: 400, Want: `{"error":"npm_max_file_size must be a multiple of 1048576"}`},
			{Name: "negative", Do: "PUT " + at, As: root, JSON: `{"plan_name":"default","npm_max_file_size":-1048576}`, Status: 400},
			{Name: "no such limit", Do: "PUT " + at, As: root, JSON: `{"plan_name":"default","helm_max_file_size":1048576}`, Status: 400},
			{Name: "changed", Do: "PUT " + at, As: root, JSON: `{"plan_name":"default","npm_max_file_size":2097152,"ci_instance_level_variables":1}`, Status: 200,
				Want: `{"ci_instance_level_variables":1,"generic_packages_max_file_size":5368709120,"npm_max_file_size":2097152}`},
			{Name: "is the setting", Do: "GET /application/settings", As: root, Status: 200, Want: `{"npm_max_file_size":2,"max_instance_variables":1}`},
			{Name: "within the limit", Do: "POST /admin/ci/variables", As: root, JSON: `{"key":"A","value":"1"}`, Status: 201},
			{Name: "has an effect", Do: "POST /admin/ci/variables", As: root, JSON: `{"key":"B","value":"1"}`, Status: 400},
		})
	})
}
