"""Environments, deployments, resource groups, CI Lint, commit statuses and
downstream pipelines."""

from compat import did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl, eventually
from pipelines import pipelined

p, w = pipelined("py-deploys", "job: {script: [x], environment: {name: production, url: 'https://example.org'}, resource_group: one}\n")
e = p.environments.create({"name": "review/1", "external_url": "https://review.example.org"})
same((e.name, e.state, e.tier, e.external_url), ("review/1", "available", "development", "https://review.example.org"))
e.external_url = "https://other.example.org"
e.save()
e.stop()
e = p.environments.get(e.id)
same((e.state, e.external_url), ("stopped", "https://other.example.org"))
e.delete()
first, second = p.pipelines.create({"ref": "main"}), p.pipelines.create({"ref": "main"})
same([j.status for j in second.jobs.list(get_all=True)], ["waiting_for_resource"])
# This release of the client has no methods for resource groups.
group = f"/projects/{p.id}/resource_groups/one"
same(ada_gl.http_get(group)["process_mode"], "unordered")
same([j["pipeline"]["id"] for j in ada_gl.http_list(group + "/upcoming_jobs", get_all=True)], [second.id])
same(ada_gl.http_put(group, post_data={"process_mode": "oldest_first"})["process_mode"], "oldest_first")
w.run("job")
w.run("job", "failed")
d = p.deployments.list(environment="production", order_by="id", sort="asc", get_all=True)
same([(x.status, x.ref, x.environment["name"]) for x in d], [("success", "main", "production"), ("failed", "main", "production")])
told = p.deployments.create({"environment": "elsewhere", "ref": "main", "sha": first.sha, "tag": False, "status": "running"})
told.status = "success"
told.save()
same(p.deployments.get(told.id).status, "success")
eventually("the environment has its address", lambda: p.environments.list(name="production", get_all=True)[0].external_url == "https://example.org")
did("deployed")

lint = p.ci_lint.get()
same((lint.valid, lint.errors), (True, []))
lint = p.ci_lint.create({"content": "job: {script: 1}\n"})
same((lint.valid, lint.errors), (False, ["jobs:job:script config should be a string or a nested array of strings up to 10 levels deep"]))
with refused(exc.GitlabCiLintError, None, "jobs job config should implement the script:, run:, or trigger: keyword"):
    p.ci_lint.validate({"content": "job: {}\n"})
did("checked a CI file")

commit = p.commits.get(first.sha)
s = commit.statuses.create({"state": "failed", "name": "outside", "description": "it broke", "target_url": "https://ci.example.org/1"})
same((s.status, s.name, s.description, s.sha), ("failed", "outside", "it broke", first.sha))
same([(x.name, x.status) for x in commit.statuses.list(name="outside", get_all=True)], [("outside", "failed")])
did("told of a status")

above, _ = pipelined("py-above", "hand on: {trigger: {project: ada/py-deploys}}\n")
up = above.pipelines.create({"ref": "main"})
eventually("the trigger job has done its work", lambda: [b.status for b in up.bridges.list(get_all=True)] == ["success"])
bridge = up.bridges.list(get_all=True)[0]
same((bridge.name, bridge.downstream_pipeline["project_id"], bridge.downstream_pipeline["source"]), ("hand on", p.id, "pipeline"))
same(above.pipelines.get(up.id).status, "success")
did("made a pipeline below another")
