"""Merge requests."""

import time

from compat import did, refused, same
from gitlab import exceptions as exc
from hosting import ada_gl as gl
from hosting import bob, bob_gl, new_project

gl.auth()
p = new_project("merge")


def commit(branch, path, text, **more):
    return p.commits.create({"branch": branch, "commit_message": f"Write {path}", "actions": [{"action": "create", "file_path": path, "content": text}], **more})


head = commit("work", "work.txt", "work\n", start_branch="main")
m = p.mergerequests.create({"source_branch": "work", "target_branch": "main", "title": "Work", "labels": ["bug"], "assignee_ids": [gl.user.id], "remove_source_branch": True})
same((m.iid, m.state, m.sha, m.labels, m.detailed_merge_status, m.references["full"]), (1, "opened", head.id, ["bug"], "mergeable", "ada/merge!1"))
with refused(exc.GitlabCreateError, 409, ["Another open merge request already exists for this source branch: !1"]):
    p.mergerequests.create({"source_branch": "work", "target_branch": "main", "title": "Again"})
same([x.iid for x in p.mergerequests.list(get_all=True, state="opened", labels=["bug"])], [1])
same([x.iid for x in gl.mergerequests.list(get_all=True)], [1])
did("proposed")

m.title = "Draft: Work"
m.save()
same((m.draft, m.detailed_merge_status), (True, "draft_status"))
with refused(exc.GitlabMRClosedError, 405, "405 Method Not Allowed"):
    m.merge()
m.title = "Work"
m.save()
same([c.id for c in m.commits()], [head.id])
same([c["new_path"] for c in m.changes()["changes"]], ["work.txt"])
same([d.head_commit_sha for d in m.diffs.list(get_all=True)], [head.id])
same([u["username"] for u in m.participants()], ["ada"])
m.unsubscribe()
m.subscribe()
did("looked at it")

commit("main", "main.txt", "main\n")
m.rebase()
for _ in range(100):
    m = p.mergerequests.get(1, include_rebase_in_progress=True)
    if not m.rebase_in_progress and m.sha != head.id:
        break
    time.sleep(0.05)
same((m.merge_error, m.sha == head.id), (None, False))
m.merge(merge_commit_message="Take it", should_remove_source_branch=True)
m = p.mergerequests.get(1)
same((m.state, m.merged_by["username"], p.branches.get("main").commit["title"]), ("merged", "ada", "Take it"))
did("merged")

commit("more", "more.txt", "more\n", start_branch="main")
other = p.mergerequests.create({"source_branch": "more", "target_branch": "main", "title": "More"})
other.state_event = "close"
other.save()
same((other.state, other.closed_by["username"]), ("closed", "ada"))
other.delete()
with refused(exc.GitlabGetError, 404, "404 Merge Request Not Found"):
    p.mergerequests.get(2)
did("closed and deleted one")

p.members.create({"user_id": bob.id, "access_level": 30})
commit("review", "review.txt", "review\n", start_branch="main")
m = p.mergerequests.create({"source_branch": "review", "target_branch": "main", "title": "Review"})
p.approvals.update(new_data={"disable_overriding_approvers_per_merge_request": False})
config = p.approvals.get()
same((config.approvers, config.reset_approvals_on_push, config.merge_requests_author_approval), ([], True, False))
rule = p.approvalrules.create({"name": "security", "approvals_required": 1, "user_ids": [bob.id]})
same((rule.rule_type, [u["username"] for u in rule.users]), ("regular", ["bob"]))
rule.approvals_required = 2
rule.save()
same([(r.name, r.approvals_required) for r in p.approvalrules.list(get_all=True)], [("security", 2)])
rule.approvals_required = 1
rule.save()
same(p.mergerequests.get(m.iid).detailed_merge_status, "not_approved")
theirs = bob_gl.projects.get(p.id).mergerequests.get(m.iid)
theirs.approve(sha=theirs.sha)
given = m.approvals.get()
same((given.approved, [a["user"]["username"] for a in given.approved_by]), (True, ["bob"]))
own = m.approval_rules.create({"name": "extra", "approvals_required": 1, "user_ids": [bob.id]})
same([r.name for r in m.approval_rules.list(get_all=True)], ["security", "extra"])
state = m.approval_state.get()
same((state.approval_rules_overwritten, [r["approved"] for r in state.rules]), (True, [True, True]))
own.delete()
theirs.unapprove()
same(m.approvals.get().approved, False)
rule.delete()
did("approved")

commit("reviewed", "reviewed.txt", "one\n", start_branch="main")
m = p.mergerequests.create({"source_branch": "reviewed", "target_branch": "main", "title": "Reviewed", "reviewer_ids": [gl.user.id]})
# This version of the package has no class for draft notes.
drafts = f"/projects/{p.id}/merge_requests/{m.iid}/draft_notes"
draft = gl.http_post(drafts, post_data={"note": "Hm"})
same(gl.http_put(f"{drafts}/{draft['id']}", post_data={"note": "Well"})["note"], "Well")
gone = gl.http_post(drafts, post_data={"note": "Two"})
gl.http_delete(f"{drafts}/{gone['id']}")
same([d["note"] for d in gl.http_list(drafts, get_all=True)], ["Well"])
gl.http_post(drafts + "/bulk_publish")
same((gl.http_list(drafts, get_all=True), [n.body for n in m.notes.list(get_all=True, sort="asc", activity_filter="only_comments")]), ([], ["Well"]))
did("reviewed with draft notes")
