package compat

import (
	"strconv"
	"testing"
)

// cliPipelines runs a pipeline and reads its jobs with the command.
func cliPipelines(t *testing.T, c cli) {
	var p struct {
		ID int64 `json:"id"`
	}
	c.json(t, &p, "project", "create", "--name", "pipes", "--initialize-with-readme", "true")
	id := strconv.FormatInt(p.ID, 10)
	c.run(t, "project-file", "create", "--project-id", id, "--file-path", ".gitlab-ci.yml", "--branch", "main", "--commit-message", "CI",
		"--content", "job: {script: [x]}\nlater: {stage: deploy, script: [x], when: manual}\n")
	root := c.s.client(t, rootToken)
	made := ask(root.Users.CreateUserRunner(userRunner(p.ID))).ok(t)
	w := worker{c.s.url, made.Token}
	j := w.run(t, "job", "success")

	var list []struct {
		ID     int64  `json:"id"`
		Status string `json:"status"`
		Source string `json:"source"`
	}
	c.json(t, &list, "project-pipeline", "list", "--project-id", id)
	same(t, "pipelines", []any{len(list), list[0].Status, list[0].Source}, []any{1, "success", "push"})
	job := strconv.FormatInt(j.ID, 10)
	same(t, "log", c.run(t, "project-job", "trace", "--project-id", id, "--id", job), "the log of job\n")
}
