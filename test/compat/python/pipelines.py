"""Pipelines, jobs, logs and artifacts."""

import gzip
import io
import zipfile

from compat import URL, did, recent, refused, same
from gitlab import Gitlab, exceptions as exc
from hosting import ada_gl, bob_gl, eventually, new_project
from worker import Worker, value


def pipelined(path, yaml):
    """Creates a project as Ada with a CI/CD configuration, and a runner for it."""
    p = new_project(path)
    p.files.create({"file_path": ".gitlab-ci.yml", "branch": "main", "content": yaml, "commit_message": "CI [skip ci]"})
    made = ada_gl.http_post("/user/runners", post_data={"runner_type": "project_type", "project_id": p.id, "description": "of " + path, "run_untagged": True})
    return p, Worker(made["token"])


def states(pipeline, **more):
    return " ".join(f"{j.name}:{j.status}" for j in sorted(pipeline.jobs.list(get_all=True, **more), key=lambda j: j.id))


p, w = pipelined("py-pipelines", """
stages: [build, test, deploy]
build: {stage: build, script: [x], artifacts: {paths: [out], reports: {junit: j.xml}}}
test: {stage: test, script: [x], coverage: '/(\\d+)% covered/'}
deploy: {stage: deploy, script: [x], when: manual}
""")
eventually("the push has left its mark", lambda: [x.status for x in p.pipelines.list(get_all=True)] == ["skipped"])
made = p.pipelines.create({"ref": "main", "variables": [{"key": "COLOR", "value": "red"}]})
head = p.branches.get("main").commit["id"]
same((made.status, made.source, made.ref, made.sha, made.user["username"], made.iid), ("pending", "api", "main", head, "ada", 2))
assert recent(made.created_at), made.created_at
same([(v.key, v.value, v.variable_type) for v in made.variables.list(get_all=True)], [("COLOR", "red", "env_var")])
same(states(made), "build:pending test:created deploy:created")

job = w.take("build")
same(value(job, "COLOR"), "red")
log = "one\ntwo\n"
w.log(job, 0, log[:4])
build = p.jobs.get(job["id"])
same((build.status, build.stage, build.runner["description"], build.commit["id"]), ("running", "build", "of py-pipelines", head))
same(build.trace(), b"one\n")
w.log(job, 4, log[4:])
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w") as z:
    z.writestr("out/a.txt", "text\n")
w.upload(job, "archive", "zip", packed.getvalue())
w.upload(job, "junit", "gzip", gzip.compress(b'<testsuite name="s"><testcase classname="c" name="n" time="2"><failure>why</failure></testcase></testsuite>'))
w.end(job, "success", log)
build = p.jobs.get(job["id"])
same((build.status, build.trace(), build.artifacts_file), ("success", log.encode(), {"filename": "artifacts.zip", "size": len(packed.getvalue())}))
got = io.BytesIO()
build.trace(streamed=True, action=got.write)
same(got.getvalue(), log.encode())
did("followed a job and its log")

same(build.artifacts(), packed.getvalue())
same(build.artifact("out/a.txt"), b"text\n")
with refused(exc.GitlabGetError, 404, "404 Not found"):
    build.artifact("out/none")
w.run("test", "failed")
report = p.pipelines.get(made.id).test_report.get()
same((report.total_count, report.failed_count, report.total_time, report.test_suites[0]["test_cases"][0]["system_output"]), (1, 1, 2, "why"))
same(p.pipelines.get(made.id).test_report_summary.get().total["failed"], 1)
did("read artifacts and reports")

same(p.pipelines.get(made.id).status, "failed")
made.retry()
job = w.take("test")
w.log(job, 0, "42% covered\n")
w.end(job, "success", "42% covered\n")
same(p.jobs.get(job["id"]).coverage, 42)
same(states(made, include_retried=True), "build:success test:failed deploy:manual test:success")
deploy = [j for j in made.jobs.list(scope=["manual"], get_all=True)]
same([j.name for j in deploy], ["deploy"])
deploy = p.jobs.get(deploy[0].id)
deploy.play()
job = w.take("deploy")
deploy.cancel()
same(p.jobs.get(deploy.id).status, "canceled")
with refused(exc.GitlabJobPlayError, 400, "400 Bad request - Unplayable Job"):
    p.jobs.get(build.id).play()
deploy.retry()
w.run("deploy")
pipeline = p.pipelines.get(made.id)
same((pipeline.status, pipeline.coverage, pipeline.detailed_status["text"]), ("success", "42.00", "Passed"))
same(p.pipelines.get("latest", ref="main").id, made.id)
same(p.artifacts.download(ref_name="main", job="build"), packed.getvalue())
same(p.artifacts.raw(ref_name="main", artifact_path="out/a.txt", job="build"), b"text\n")
did("retried, played and canceled jobs")

build.keep_artifacts()
same(p.jobs.get(build.id).artifacts_expire_at, None)
build.delete_artifacts()
with refused(exc.GitlabGetError, 404, "404 Not found"):
    build.artifacts()
build.erase()
assert recent(p.jobs.get(build.id).erased_at)
with refused(exc.GitlabGetError, 404, "404 Not found"):
    build.trace()
same([j.status for j in p.jobs.list(iterator=True, scope="failed")], ["failed"])
other = p.pipelines.create({"ref": "main"})
same(other.cancel()["status"], "canceled")
same([x.iid for x in p.pipelines.list(status="canceled", get_all=True)], [3])
other.delete()
with refused(exc.GitlabGetError, 404, "404 Pipeline Not Found"):
    p.pipelines.get(other.id)
with refused(exc.GitlabCreateError, 400, {"base": ["Reference not found"]}):
    p.pipelines.create({"ref": "nowhere"})
with refused(exc.GitlabGetError, 404, "404 Project Not Found"):
    bob_gl.projects.get(p.id)
did("erased a job and deleted a pipeline")

# A running job can read itself with its token.
p, w = pipelined("py-token", "job: {script: [x]}\n")
p.pipelines.create({"ref": "main"})
job = w.take("job")
own = Gitlab(URL, job_token=job["token"])
same((own.http_get("/job")["id"], own.http_get("/job")["status"]), (job["id"], "running"))
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    own.http_get("/user")
w.end(job, "success")
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    own.http_get("/job")
# This release of the client has no methods for the scope.
scope = f"/projects/{p.id}/job_token_scope"
same(ada_gl.http_get(scope)["inbound_enabled"], True)
other = new_project("py-other")
ada_gl.http_post(scope + "/allowlist", post_data={"target_project_id": other.id})
same([x["path_with_namespace"] for x in ada_gl.http_list(scope + "/allowlist", get_all=True)], ["ada/py-token", "ada/py-other"])
ada_gl.http_delete(f"{scope}/allowlist/{other.id}")
did("used the token of a job")
