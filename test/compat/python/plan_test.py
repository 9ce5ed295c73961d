"""Issues, labels, milestones, notes, boards and events."""

import io

from compat import URL, did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl
from hosting import new_project

gl.auth()
p = new_project("plan")
bug = p.labels.create({"name": "bug", "color": "#ff0000", "description": "Broken", "priority": 1})
same((bug.name, bug.color, bug.text_color, bug.priority, bug.is_project_label), ("bug", "#ff0000", "#FFFFFF", 1, True))
with refused(exc.GitlabCreateError, 409, "Label already exists"):
    p.labels.create({"name": "bug", "color": "#ff0000"})
bug.new_name = "defect"
bug.save()
same([label.name for label in p.labels.list(get_all=True)], ["defect"])
bug = p.labels.get("defect")
bug.subscribe()
did("made a label")

goal = p.milestones.create({"title": "v1", "due_date": "2030-01-01"})
goal.description = "The first one"
goal.save()
same((p.milestones.get(goal.id).description, goal.web_url), ("The first one", f"{URL}/ada/plan/-/milestones/1"))
did("made a milestone")

first = p.issues.create({"title": "It breaks", "description": "At once", "labels": ["defect", "new"], "milestone_id": goal.id})
same((first.iid, first.state, first.labels, first.milestone["title"], first.author["username"]), (1, "opened", ["defect", "new"], "v1", "ada"))
second = p.issues.create({"title": "So does this", "confidential": True})
same([i.iid for i in p.issues.list(get_all=True)], [2, 1])
same([i.iid for i in p.issues.list(get_all=True, labels=["defect", "new"], milestone="v1", state="opened")], [1])
same([i.iid for i in gl.issues.list(get_all=True, search="breaks")], [1])
same([i.iid for i in goal.issues()], [1])
first.assignee_ids = [gl.user.id]
first.labels = ["defect"]
first.state_event = "close"
first.save()
same((first.state, first.labels, first.assignees[0]["username"], first.attributes["closed_by"]["username"]), ("closed", ["defect"], "ada", "ada"))
first.state_event = "reopen"
first.save()
first.unsubscribe()
first.subscribe()
same([u["username"] for u in first.participants()], ["ada"])
with refused(exc.GitlabGetError, 404, "404 Issue Not Found"):
    p.issues.get(99)
did("worked on issues")

linked, other = first.links.create({"target_project_id": p.id, "target_issue_iid": 2})
same((linked.iid, other.iid, [link.iid for link in first.links.list(get_all=True)]), (1, 2, [2]))
first.links.delete(first.links.list(get_all=True)[0].issue_link_id)
elsewhere = new_project("elsewhere")
second.move(elsewhere.id)
same([i.title for i in elsewhere.issues.list(get_all=True)], ["So does this"])
did("linked and moved issues")

same(first.time_estimate("1d")["human_time_estimate"], "1d")
same(first.add_spent_time("1h 30m")["total_time_spent"], 5400)
same(p.issues.get(first.iid).time_stats()["human_total_time_spent"], "1h 30m")
first.reset_time_estimate()
same(first.reset_spent_time()["total_time_spent"], 0)
commands = first.notes.create({"body": "/spend 2h"})
same(commands.commands_changes["spend_time"]["duration"], 7200)
did("tracked time")

note = first.notes.create({"body": "Why?"})
note.body = "Why so?"
note.save()
same(first.notes.get(note.id).body, "Why so?")
talk = first.discussions.create({"body": "Let us see"})
talk.notes.create({"body": "Yes"})
same([n["body"] for n in first.discussions.get(talk.id).attributes["notes"]], ["Let us see", "Yes"])
note.delete()
same(sorted(n.body for n in first.notes.list(get_all=True, query_parameters={"activity_filter": "only_comments"})), ["Let us see", "Yes"])
did("talked")

board = p.boards.create({"name": "Work"})
column = board.lists.create({"label_id": bug.id})
same([c.label["name"] for c in p.boards.get(board.id).lists.list(get_all=True)], ["defect"])
column.delete()
board.delete()
badge = p.badges.create({"link_url": "https://example.org/%{project_path}", "image_url": "https://example.org/x.png"})
same(badge.rendered_link_url, "https://example.org/ada/plan")
badge.delete()
sent = p.upload("x.png", filedata=io.BytesIO(b"picture").read())
same(sent["markdown"], f"![x]({sent['url']})")
same(gl.markdown("#1", gfm=True, project="ada/plan").count("/ada/plan/-/issues/1"), 1)
did("used boards, badges, uploads and Markdown")

same([e.action_name for e in p.events.list(get_all=True, target_type="issue")][:3], ["closed", "reopened", "closed"])
same([e.note["body"] for e in p.events.list(get_all=True, action="commented")], ["Yes", "Let us see"])
same(gl.events.list(get_all=True, scope="all", action="pushed")[-1].push_data["ref"], "main")
same({e.author_username for e in gl.users.get(gl.user.id).events.list(get_all=True)}, {"ada"})
first.delete()
goal.delete()
bug.delete()
did("saw it in the events")

p.commits.create({"branch": "main", "commit_message": "First", "actions": [{"action": "create", "file_path": "a.txt", "content": "one\ntwo\n"}]})
p.commits.create(
    {
        "branch": "work",
        "start_branch": "main",
        "commit_message": "Second",
        "actions": [{"action": "update", "file_path": "a.txt", "content": "one\nTWO\n"}],
    }
)
request = p.mergerequests.create({"source_branch": "work", "target_branch": "main", "title": "Shout"})
note = request.notes.create({"body": "Fine"})
where = {**request.diff_refs, "position_type": "text", "new_path": "a.txt", "old_path": "a.txt", "new_line": 2}
talk = request.discussions.create({"body": "So loud?", "position": where})
same((talk.attributes["notes"][0]["type"], talk.attributes["notes"][0]["position"]["new_line"]), ("DiffNote", 2))
with refused(exc.GitlabCreateError, 400, {"line_code": ["can't be blank", "must be a valid line code"]}):
    request.discussions.create({"body": "Where?", "position": {**where, "new_line": 9}})
talk.notes.create({"body": "Yes"})
same(p.mergerequests.get(request.iid).blocking_discussions_resolved, False)
talk.resolved = True
talk.save()
same([n["resolved"] for n in request.discussions.get(talk.id).attributes["notes"]], [True, True])
same(p.mergerequests.get(request.iid).blocking_discussions_resolved, True)
note.delete()
same([len(d.attributes["notes"]) for d in request.discussions.list(get_all=True)], [2])
did("talked about a merge request")
