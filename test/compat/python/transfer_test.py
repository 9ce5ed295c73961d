"""Export and import of a group."""

import io
import time

from compat import did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl

g = gl.groups.create({"name": "Sent", "path": "sent", "visibility": "public"})
sub = gl.groups.create({"name": "Inner", "path": "inner", "parent_id": g.id})
g.labels.create({"name": "copper", "color": "#b87333"})
g.milestones.create({"title": "1.0"})
g.badges.create({"link_url": "https://example.org", "image_url": "https://example.org/x.svg"})
sub.boards.create({"name": "Work"})


def eventually(call):
    """Repeats a call until it does not return 404, and returns its result."""
    for _ in range(300):
        try:
            return call()
        except (exc.GitlabGetError, exc.GitlabHttpError) as e:
            same(e.response_code, 404)
            time.sleep(0.05)
    raise AssertionError("it does not come")


export = g.exports.create()
same(export.message, "202 Accepted")
file = io.BytesIO()
eventually(lambda: export.download(streamed=True, action=file.write))
same(file.getvalue()[:2], b"\x1f\x8b")
state = gl.http_get(f"/groups/{g.id}/export")
same((state["export_status"], state["progress"], state["size"]), ("finished", 100, len(file.getvalue())))
did("exported a group")

with refused(exc.GitlabImportError, 400, {"path": ["has already been taken"]}):
    gl.groups.import_group(io.BytesIO(file.getvalue()), path="sent", name="Again")
answer = gl.groups.import_group(io.BytesIO(file.getvalue()), path="received", name="Received")
same(answer, {"message": "202 Accepted"})
made = eventually(lambda: gl.groups.get("received"))
same((made.name, made.visibility), ("Received", "private"))
same([one.name for one in made.labels.list(get_all=True)], ["copper"])
same([one.title for one in made.milestones.list(get_all=True)], ["1.0"])
same(len(made.badges.list(get_all=True)), 1)
same([one.name for one in gl.groups.get("received/inner").boards.list(get_all=True)], ["Work"])
same(gl.http_list("/group_imports", iterator=False)[0]["status"], "finished")
did("imported a group")

gl.groups.import_group(io.BytesIO(file.getvalue()), path="received", name="Received", parent_id=str(g.id))  # the client only sends text
same(eventually(lambda: gl.groups.get("sent/received/inner")).visibility, "public")
did("imported a group below another")

gl.groups.import_group(io.BytesIO(b"no archive"), path="broken", name="Broken")
for _ in range(300):
    last = gl.http_list("/group_imports", iterator=False)[0]
    if last["status"] not in ("queued", "started"):
        break
    time.sleep(0.05)
same((last["path"], last["status"], last["group_id"]), ("broken", "failed", None))
did("was refused a file that is none")
