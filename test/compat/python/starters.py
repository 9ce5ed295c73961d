"""Configuration of pipelines: variables, triggers,
schedules, runners."""

from compat import HIDDEN, URL, did, recent, refused, same
from gitlab import Gitlab, exceptions as exc
from hosting import ada_gl, bob_gl, eventually, gl, new_group
from pipelines import pipelined
from worker import value

p, w = pipelined("py-variables", "job: {script: [x]}\n")
v = p.variables.create({"key": "KEY", "value": HIDDEN, "masked": True, "protected": True, "description": "opens"})
same((v.key, v.value, v.masked, v.protected, v.environment_scope, v.variable_type, v.description), ("KEY", HIDDEN, True, True, "*", "env_var", "opens"))
p.variables.create({"key": "KEY", "value": "review", "environment_scope": "review/*"})
same(p.variables.get("KEY", filter={"environment_scope": "review/*"}).value, "review")
p.variables.update("KEY", {"value": "changed"}, filter={"environment_scope": "review/*"})
same([(x.environment_scope, x.value) for x in p.variables.list(get_all=True)], [("*", HIDDEN), ("review/*", "changed")])
p.variables.delete("KEY", filter={"environment_scope": "review/*"})
g = new_group("py-variables-group")
v = g.variables.create({"key": "FILE", "value": "text", "variable_type": "file"})
v.value = "other"
v.save()
same((g.variables.get("FILE").value, g.variables.get("FILE").variable_type), ("other", "file"))
v.delete()
same(g.variables.list(get_all=True), [])
gl.variables.create({"key": "EVERYWHERE", "value": "yes"})
p.pipelines.create({"ref": "main"})
job = w.run("job")
same((value(job, "KEY"), value(job, "EVERYWHERE")), (HIDDEN, "yes"))
gl.variables.delete("EVERYWHERE")
with refused(exc.GitlabGetError, 404, "404 Variable Not Found"):
    p.variables.get("NONE")
did("kept variables")

t = p.triggers.create({"description": "from outside"})
same((t.description, t.owner["username"], t.last_used), ("from outside", "ada", None))
nobody = Gitlab(URL)
run = nobody.projects.get(p.id, lazy=True).trigger_pipeline("main", t.token, variables={"COLOR": "red"})
same((run.source, run.user["username"]), ("trigger", "ada"))
same(value(w.run("job"), "COLOR"), "red")
t.description = "changed"
t.save()
same([x.description for x in p.triggers.list(get_all=True)], ["changed"])
assert recent(p.triggers.get(t.id).last_used)
t.delete()
with refused(exc.GitlabCreateError, 404, "404 Not found"):
    nobody.projects.get(p.id, lazy=True).trigger_pipeline("main", t.token)
did("triggered a pipeline")

s = p.pipelineschedules.create({"ref": "main", "description": "nightly", "cron": "0 1 * * 5", "cron_timezone": "UTC"})
same((s.description, s.cron, s.active, s.owner["username"], s.next_run_at[11:16]), ("nightly", "0 1 * * 5", True, "ada", "01:00"))
s.variables.create({"key": "COLOR", "value": "blue"})
schedule = s.id
s.play()  # the client replaces its attributes by the response
eventually("the schedule has run", lambda: len(p.pipelines.list(source="schedule", get_all=True)) == 1)
same(value(w.run("job"), "COLOR"), "blue")
s = p.pipelineschedules.get(schedule)
same((s.last_pipeline["status"], s.attributes["variables"][0]["value"]), ("success", "blue"))
s.active = False
s.save()
same([x.active for x in p.pipelineschedules.list(get_all=True)], [False])
s.variables.delete("COLOR")
s.delete()
with refused(exc.GitlabGetError, 404, "404 Pipeline Schedule Not Found"):
    p.pipelineschedules.get(s.id)
did("kept a schedule")

r = p.runners.list(type="project_type", get_all=True)
same([x.description for x in r], ["of py-variables"])
r = ada_gl.runners.get(r[0].id)
same((r.runner_type, r.status, r.online, r.run_untagged, [x["path_with_namespace"] for x in r.projects]), ("project_type", "online", True, True, ["ada/py-variables"]))
same([(j.name, j.status) for j in r.jobs.list(status="success", get_all=True)], [("job", "success")] * 3)
r.paused, r.description, r.tag_list = True, "tired", ["a", "b"]
r.save()
r = ada_gl.runners.get(r.id)
same((r.paused, r.description, r.tag_list), (True, "tired", ["a", "b"]))
same([x.id for x in gl.runners_all.list(paused=True, get_all=True)], [r.id])
with refused(exc.GitlabGetError, 403, "403 Forbidden - No access granted"):
    bob_gl.runners.get(r.id)
r.delete()
with refused(exc.GitlabGetError, 404, "404 Runner Not Found"):
    ada_gl.runners.get(r.id)
did("kept a runner")
