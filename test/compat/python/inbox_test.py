"""To-do items and emoji reactions."""

from compat import did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl
from hosting import new_project

gl.auth()
p = new_project("inbox")
issue = p.issues.create({"title": "It breaks", "assignee_ids": [gl.user.id]})
items = gl.todos.list(get_all=True, project_id=p.id)
same([(t.action_name, t.target_type, t.target["iid"], t.state) for t in items], [("assigned", "Issue", 1, "pending")])
items[0].mark_as_done()
same(gl.todos.list(get_all=True), [])
issue.todo()
same([t.action_name for t in gl.todos.list(get_all=True, type="Issue")], ["marked"])
gl.todos.mark_all_as_done()
same(gl.todos.list(get_all=True), [])
same(len(gl.todos.list(get_all=True, state="done")), 2)
did("used the to-do list")

up = issue.awardemojis.create({"name": "thumbsup"})
same((up.name, up.user["username"], up.awardable_type), ("thumbsup", "ada", "Issue"))
with refused(exc.GitlabCreateError, 404, "404 Award Emoji Name has already been taken Not Found"):
    issue.awardemojis.create({"name": "thumbsup"})
same(p.issues.get(1).upvotes, 1)
note = issue.notes.create({"body": "Why?"})
award = note.awardemojis.create({"name": "tada"})
same([a.name for a in note.awardemojis.list(get_all=True)], ["tada"])
award.delete()
up.delete()
same(p.issues.get(1).upvotes, 0)
did("reacted")
