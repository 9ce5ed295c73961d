"""Branches, tags and commits."""

from compat import URL, did, recent, refused, same
from gitlab import exceptions as exc
from hosting import eventually, new_project


def titles(commits):
    return [c.title for c in commits]


p = new_project("history")
start = p.commits.get("main")
same((start.title, start.author_name, start.parent_ids, start.stats["additions"] > 0), ("Initial commit", "Name of ada", [], True))
b = p.branches.create({"branch": "feature/über.1", "ref": "main"})
same((b.name, b.commit["id"], b.default, b.protected, b.merged, b.can_push), ("feature/über.1", start.id, False, False, False, True))
same(p.branches.get("feature/über.1").commit["id"], start.id)
same([x.name for x in p.branches.list(get_all=True, per_page=1)], ["feature/über.1", "main"])
same([x.name for x in p.branches.list(get_all=True, search="über")], ["feature/über.1"])
with refused(exc.GitlabCreateError, 400, "Branch already exists"):
    p.branches.create({"branch": "main", "ref": "main"})
with refused(exc.GitlabCreateError, 400, "Invalid reference name: nowhere"):
    p.branches.create({"branch": "x", "ref": "nowhere"})
did("created and listed branches")

made = p.commits.create({
    "branch": "main", "commit_message": "change all\n\nChangelog: added\nCc: a\nCc: b\n", "author_name": "Charles", "author_email": "charles@example.org",
    "actions": [
        {"action": "create", "file_path": "src/a.txt", "content": "one\ntwo\n"},
        {"action": "create", "file_path": "src/run", "content": "IyEvYmluL3NoCg==", "encoding": "base64"},
        {"action": "update", "file_path": "README.md", "content": "# changed\n"},
    ],
})
same((made.title, made.author_name, made.committer_name, made.parent_ids), ("change all", "Charles", "Name of ada", [start.id]))
same(made.stats, {"additions": 4, "deletions": 2, "total": 6})
same(made.web_url, f"{URL}/ada/history/-/commit/{made.id}")
moved = p.commits.create({"branch": "main", "commit_message": "move about", "actions": [
    {"action": "move", "file_path": "lib/a.txt", "previous_path": "src/a.txt"},
    {"action": "chmod", "file_path": "src/run", "execute_filemode": True},
    {"action": "delete", "file_path": "README.md"},
]})
changes = {d["new_path"]: d for d in moved.diff(get_all=True)}
same(sorted(changes), ["README.md", "lib/a.txt", "src/run"])
same((changes["lib/a.txt"]["old_path"], changes["lib/a.txt"]["renamed_file"]), ("src/a.txt", True))
same((changes["README.md"]["deleted_file"], changes["README.md"]["diff"]), (True, "@@ -1 +0,0 @@\n-# changed\n"))
same((changes["src/run"]["a_mode"], changes["src/run"]["b_mode"]), ("100644", "100755"))
with refused(exc.GitlabCreateError, 400, "A file with this name doesn't exist"):
    p.commits.create({"branch": "main", "commit_message": "x", "actions": [{"action": "delete", "file_path": "nowhere"}]})
did("committed changes")

same(titles(p.commits.list(get_all=True)), ["move about", "change all", "Initial commit"])
same(titles(p.commits.list(iterator=True, per_page=1)), ["move about", "change all", "Initial commit"])
same(titles(p.commits.list(get_all=True, query_parameters={"path": "lib/a.txt"})), ["move about"])
same(titles(p.commits.list(get_all=True, author="Charles", with_stats=True)), ["change all"])
same(titles(p.commits.list(get_all=True, ref_name=f"{start.id}..main")), ["move about", "change all"])
same(titles(p.commits.list(get_all=True, until="2000-01-01T00:00:00Z")), [])
with_trailers = p.commits.list(get_all=True, author="Charles", trailers=True)[0]
same(with_trailers.trailers, {"Changelog": "added", "Cc": "b"})
same(with_trailers.extended_trailers, {"Changelog": ["added"], "Cc": ["a", "b"]})
same(moved.refs("branch", get_all=True), [{"type": "branch", "name": "main"}])
did("listed commits")

fix = p.commits.create({"branch": "fix", "start_branch": "main", "commit_message": "fix it", "actions": [{"action": "create", "file_path": "fix.txt", "content": "f\n"}]})
fix.cherry_pick(branch="feature/über.1")
picked = p.commits.get("feature/über.1")
same((picked.title, picked.message), ("fix it", f"fix it\n\n(cherry picked from commit {fix.id})"))
same(fix.revert(branch="fix")["title"], 'Revert "fix it"')
with refused(exc.GitlabGetError, 404, "404 File Not Found"):
    p.files.get("fix.txt", ref="fix")
did("picked and reverted a commit")

fix.comments.create({"note": "good", "path": "fix.txt", "line": 1, "line_type": "new"})
fix.comments.create({"note": "very"})
same([(n.note, n.path, n.line, n.author["username"]) for n in fix.comments.list(get_all=True)], [("good", "fix.txt", 1, "ada"), ("very", None, None, "ada")])
status = fix.statuses.create({"state": "running", "name": "lint", "target_url": "https://ci.example.org/1", "coverage": 12.5})
same((status.status, status.name, status.sha, status.coverage, status.author["username"]), ("running", "lint", fix.id, 12.5, "ada"))
fix.statuses.create({"state": "success", "name": "lint"})
same([(s.name, s.status) for s in fix.statuses.list(get_all=True)], [("lint", "success")])
same(p.commits.get(fix.id).status, "success")
did("commented on a commit and set its status")

light = p.tags.create({"tag_name": "v1.9", "ref": "main"})
noted = p.tags.create({"tag_name": "v1.10", "ref": "main", "message": "the tenth"})
same((light.message, light.target, light.commit["id"]), (None, moved.id, moved.id))
same((noted.message, noted.commit["id"], noted.target != moved.id), ("the tenth", moved.id, True))
assert recent(noted.created_at)
same([t.name for t in p.tags.list(get_all=True, order_by="version", sort="desc")], ["v1.10", "v1.9"])
same(p.tags.get("v1.10").attributes, noted.attributes)
with refused(exc.GitlabCreateError, 400, "Tag v1.9 already exists"):
    p.tags.create({"tag_name": "v1.9", "ref": "main"})
light.delete()
same([t.name for t in p.tags.list(get_all=True)], ["v1.10"])
did("created, listed and deleted tags")

p.branches.create({"branch": "done", "ref": made.id})
p.delete_merged_branches()
eventually("the merged branch is gone", lambda: "done" not in [x.name for x in p.branches.list(get_all=True)])
p.branches.delete("fix")
same([x.name for x in p.branches.list(get_all=True)], ["feature/über.1", "main"])
did("deleted branches")
