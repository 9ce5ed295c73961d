"""Groups: create, list, change, move, share, delete; namespaces."""

import gitlab
from compat import URL, did, refused, same
from gitlab import exceptions as exc
from hosting import ada, ada_gl, bob, bob_gl, gl, new_group


def full(groups):
    return [g.full_path for g in groups]


g = ada_gl.groups.create({"name": "Engines", "path": "engines", "description": "of brass", "visibility": "public"})
same((g.full_path, g.full_name, g.parent_id, g.web_url, g.visibility), ("engines", "Engines", None, URL + "/groups/engines", "public"))
sub = ada_gl.groups.create({"name": "Small", "path": "small", "parent_id": g.id, "visibility": "public"})
deep = ada_gl.groups.create({"name": "Tiny", "path": "tiny", "parent_id": sub.id})
same((deep.full_path, deep.full_name), ("engines/small/tiny", "Engines / Small / Tiny"))
same(ada_gl.groups.get("engines/small").id, sub.id)
same(full(g.subgroups.list(get_all=True)), ["engines/small"])
same(full(g.descendant_groups.list(get_all=True)), ["engines/small", "engines/small/tiny"])
with refused(exc.GitlabCreateError, 400, {"path": ["has already been taken"]}):
    new_group("engines")
did("created groups in groups")

mine = bob_gl.groups.create({"name": "Engines of Bob", "path": "bobs-engines"})
same(full(bob_gl.groups.list(get_all=True)), ["bobs-engines", "guests"])
same(full(bob_gl.groups.list(get_all=True, owned=True)), ["bobs-engines"])
same(full(bob_gl.groups.list(get_all=True, all_available=True, search="engines")), ["engines", "bobs-engines"])
same(full(gl.groups.list(get_all=True, top_level_only=True, skip_groups=[mine.id])), ["engines", "guests", "shelf"])
everything = full(gl.groups.list(iterator=True, per_page=2))
same(everything, ["engines", "bobs-engines", "guests", "shelf", "engines/small", "engines/small/tiny"])
same(full(gl.groups.list(iterator=True, per_page=2, pagination="keyset", order_by="name", sort="asc")), everything)
did("listed groups")

p = ada_gl.projects.create({"name": "loom", "namespace_id": sub.id})
same((p.path_with_namespace, p.permissions["group_access"]["access_level"]), ("engines/small/loom", 50))
same([x.name for x in g.projects.list(get_all=True, include_subgroups=True)], ["loom"])
g.name, g.path, g.description = "Machines", "machines", "of steel"
g.save()
same((g.full_path, g.description), ("machines", "of steel"))
same(ada_gl.projects.get("engines/small/loom").path_with_namespace, "machines/small/loom")
same(ada_gl.groups.get("engines/small").full_path, "machines/small")
did("renamed a group")

deep.transfer(g.id)
same(ada_gl.groups.get(deep.id).full_path, "machines/tiny")
deep.transfer()
same(ada_gl.groups.get(deep.id).full_path, "tiny")
with refused(exc.GitlabTransferProjectError, 403, "403 Forbidden"):
    deep.transfer_project(p.id)
gl.groups.get(deep.id).transfer_project(p.id)
same(ada_gl.projects.get(p.id).path_with_namespace, "tiny/loom")
did("moved groups and a project")

invited = new_group("readers")
invited.members.create({"user_id": bob.id, "access_level": gitlab.const.OWNER_ACCESS})
deep.share(invited.id, gitlab.const.REPORTER_ACCESS)
same([(s["group_id"], s["group_access_level"]) for s in deep.shared_with_groups], [(invited.id, 20)])
same(bob_gl.projects.get(p.id).permissions["group_access"]["access_level"], 20)
deep.unshare(invited.id)
with refused(exc.GitlabGetError, 404, "404 Project Not Found"):
    bob_gl.projects.get(p.id)
did("shared a group")

same([(n.kind, n.full_path) for n in ada_gl.namespaces.list(get_all=True, search="tiny")], [("group", "tiny")])
same(ada_gl.namespaces.get("ada").kind, "user")
same(ada_gl.namespaces.exists("tiny").exists, True)
same(ada_gl.namespaces.exists("nobody-has-it").exists, False)
events = deep.audit_events.list(get_all=True)
assert events and {e.entity_type for e in events} == {"Group"} and {e.author_id for e in events} <= {1, ada.id}, events
same(events[-1].event_type, "group_created")
same(deep.audit_events.get(events[0].id).id, events[0].id)
did("read namespaces and audit events")

with refused(exc.GitlabDeleteError, 403, "403 Forbidden"):
    bob_gl.groups.get(g.id).delete()
g.delete()
with refused(exc.GitlabGetError, 404, "404 Group Not Found"):
    ada_gl.groups.get(sub.id)
did("deleted a group with all below")
