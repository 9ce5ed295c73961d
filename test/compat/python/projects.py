"""Projects: create, list, change, move, fork, delete."""

import gitlab
import requests
from compat import PICTURE, URL, client, day, did, recent, refused, same
from gitlab import exceptions as exc
from hosting import ada, ada_gl, bob, bob_gl, eventually, gl, new_group, paths

p = ada_gl.projects.create({
    "name": "Analytical Engine", "description": "counts", "visibility": "public", "topics": ["brass", "steam"],
    "initialize_with_readme": True, "default_branch": "trunk",
})
same((p.path, p.path_with_namespace, p.default_branch, p.topics), ("analytical-engine", "ada/analytical-engine", "trunk", ["brass", "steam"]))
same((p.web_url, p.http_url_to_repo), (URL + "/ada/analytical-engine", URL + "/ada/analytical-engine.git"))
same((p.namespace["kind"], p.owner["username"], p.permissions["project_access"]["access_level"]), ("user", "ada", gitlab.const.OWNER_ACCESS))
assert recent(p.created_at) and recent(p.last_activity_at)
same(ada_gl.projects.get(p.id).attributes, p.attributes)
same(ada_gl.projects.get("ada/analytical-engine").attributes, p.attributes)
eventually("the commit is counted", lambda: ada_gl.projects.get(p.id, statistics=True).statistics["commit_count"] == 1)
empty = ada_gl.projects.create({"name": "empty"})
same((empty.empty_repo, empty.default_branch), (True, "main"))
# The first file creates the branch.
empty.files.create({"file_path": "a.txt", "branch": empty.default_branch, "content": "a", "commit_message": "begin"})
same(ada_gl.projects.get(empty.id).empty_repo, False)
with refused(exc.GitlabCreateError, 400, {"path": ["has already been taken"]}):
    ada_gl.projects.create({"name": "empty"})
with refused(exc.GitlabGetError, 404, "404 Project Not Found"):
    bob_gl.projects.get("ada/empty")
did("created and read projects")

p.description, p.merge_method, p.topics = "subtracts", "ff", ["iron"]
p.save()
same((p.description, p.merge_method, p.topics), ("subtracts", "ff", ["iron"]))
p.branches.create({"branch": "next", "ref": "trunk"})
p.default_branch = "next"
p.save()
same(ada_gl.projects.get(p.id).default_branch, "next")
p.avatar = PICTURE
p.save()
picture = requests.get(p.avatar_url, timeout=30)
same((picture.status_code, picture.headers["Content-Type"], picture.content), (200, "image/png", PICTURE))
# This version of the client sends an empty file; later versions send this.
same(ada_gl.http_put(f"/projects/{p.id}", post_data={"avatar": ""})["avatar_url"], None)
with refused(exc.GitlabUpdateError, 403, "403 Forbidden"):
    theirs = bob_gl.projects.get(p.id)
    theirs.description = "stolen"
    theirs.save()
did("changed a project and its picture")

p.path = "renamed"
p.save()
same(p.path_with_namespace, "ada/renamed")
old = ada_gl.projects.get("ada/analytical-engine")  # the client follows the redirect
same((old.id, old.path_with_namespace), (p.id, "ada/renamed"))
same([b.name for b in ada_gl.projects.get("ada/analytical-engine", lazy=True).branches.list(get_all=True)], ["next", "trunk"])
did("renamed a project and found it by the old path")

seen = bob_gl.projects.get(p.id)
seen.star()
same(seen.star_count, 1)
same(paths(bob_gl.projects.list(starred=True, get_all=True)), ["ada/renamed"])
seen.unstar()
same(seen.star_count, 0)
p.archive()
same(p.archived, True)
with refused(exc.GitlabCreateError, 403, "403 Forbidden - The project is archived: nothing in it can be changed."):
    p.branches.create({"branch": "late", "ref": "trunk"})
p.unarchive()
same(p.archived, False)
did("starred and archived a project")

g = new_group("shelf", visibility="public")
for n in range(5):
    ada_gl.projects.create({"name": f"book {n}", "namespace_id": g.id, "visibility": "public", "topics": ["paper", f"n{n}"]})
names = [f"shelf/book-{n}" for n in range(5)]
by_id = {"search": "book", "order_by": "id", "sort": "asc"}
same(paths(ada_gl.projects.list(per_page=2, get_all=True, **by_id)), names)
same(paths(ada_gl.projects.list(per_page=2, get_all=True, pagination="keyset", **by_id)), names)
pages = ada_gl.projects.list(per_page=2, iterator=True, **by_id)
same((pages.total, pages.total_pages, pages.current_page, pages.next_page, len(pages)), (5, 3, 1, 2, 5))
same(paths(pages), names)
same(paths(ada_gl.projects.list(per_page=2, iterator=True, pagination="keyset", **by_id)), names)
same(paths(ada_gl.projects.list(per_page=2, page=3, **by_id)), names[4:])
same(paths(client(None).projects.list(iterator=True, pagination="keyset", per_page=1, topic="n3", order_by="id")), names[3:4])
same(paths(bob_gl.projects.list(get_all=True, membership=True)), [])
same(paths(ada_gl.projects.list(get_all=True, owned=True, search="empty", simple=True)), ["ada/empty"])
same(paths(g.projects.list(get_all=True, order_by="name", sort="desc")), names[::-1])
same(sorted(paths(gl.users.get(ada.id, lazy=True).projects.list(get_all=True))), ["ada/empty", "ada/renamed"])
did("listed projects by offset and keyset")

fork = bob_gl.projects.get(p.id, lazy=True).forks.create({"path": "copy", "name": "copy"})
same((fork.path_with_namespace, fork.forked_from_project["id"]), ("bob/copy", p.id))
eventually("the fork is made", lambda: bob_gl.projects.get(fork.id).import_status == "finished")
same([b.name for b in bob_gl.projects.get(fork.id).branches.list(get_all=True)], ["next", "trunk"])
same(paths(p.forks.list(get_all=True)), ["bob/copy"])
with refused(exc.GitlabCreateError, 409, {"path": ["has already been taken"]}):
    bob_gl.projects.get(p.id, lazy=True).forks.create({"path": "copy", "name": "copy"})
own = bob_gl.projects.get(fork.id)
own.delete_fork_relation()
assert "forked_from_project" not in bob_gl.projects.get(fork.id).attributes
did("forked a project")

p.transfer(g.id)
same(ada_gl.projects.get(p.id).path_with_namespace, "shelf/renamed")
p.transfer("ada")
same(ada_gl.projects.get(p.id).path_with_namespace, "ada/renamed")
guests = new_group("guests")
p.share(guests.id, gitlab.const.DEVELOPER_ACCESS, expires_at=day(30))
same(ada_gl.projects.get(p.id).shared_with_groups, [
    {"group_id": guests.id, "group_name": "Group guests", "group_full_path": "guests", "group_access_level": 30, "expires_at": day(30), "member_role_id": None},
])
guests.members.create({"user_id": bob.id, "access_level": gitlab.const.MAINTAINER_ACCESS})
same(p.members_all.get(bob.id).access_level, 30)
same([u.username for u in p.users.list(get_all=True)], ["ada", "bob"])
p.unshare(guests.id)
same([u.username for u in p.users.list(get_all=True)], ["ada"])
same([x.full_path for x in ada_gl.projects.get("shelf/book-0").groups.list(get_all=True)], ["shelf"])
did("transferred and shared a project")

p.files.create({"file_path": "main.go", "branch": "next", "content": "package main\n", "commit_message": "code"})
same(p.languages(), {"Go": 100.0})
ada_gl.projects.delete(empty.id)
marked = ada_gl.projects.get(empty.id)
same(marked.marked_for_deletion_on is not None, True)
marked.restore()
same(ada_gl.projects.get(empty.id).marked_for_deletion_on, None)
ada_gl.projects.delete(empty.id)
ada_gl.projects.delete(empty.id, permanently_remove=True, full_path=ada_gl.projects.get(empty.id).path_with_namespace)
with refused(exc.GitlabGetError, 404, "404 Project Not Found"):
    ada_gl.projects.get(empty.id)
with refused(exc.GitlabDeleteError, 403, "403 Forbidden"):
    bob_gl.projects.get(p.id).delete()
did("deleted a project")
