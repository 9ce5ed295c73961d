"""Permissions: members, requests, tokens, keys, protected refs, push rules."""

import gitlab
from compat import KEYS, client, day, did, recent, refused, same
from gitlab import exceptions as exc
from hosting import ada, ada_gl, bob, bob_gl, gl, new_group, new_project


def roles(members):
    return [(m.username, m.access_level) for m in members]


p = new_project("crew")
m = p.members.create({"user_id": bob.id, "access_level": gitlab.const.REPORTER_ACCESS, "expires_at": day(30)})
same((m.username, m.access_level, m.expires_at, m.created_by["username"]), ("bob", 20, day(30), "ada"))
assert recent(m.created_at)
same(roles(p.members.list(get_all=True)), [("ada", 50), ("bob", 20)])
same(roles(p.members.list(get_all=True, query="bo")), [("bob", 20)])
m.access_level, m.expires_at = gitlab.const.DEVELOPER_ACCESS, ""
m.save()
same((p.members.get(bob.id).access_level, p.members.get(bob.id).expires_at), (30, None))
with refused(exc.GitlabCreateError, 409, "Member already exists"):
    p.members.create({"user_id": bob.id, "access_level": 30})
m.delete()
with refused(exc.GitlabGetError, 404, "404 Not found"):
    p.members.get(bob.id)
g = new_group("people")
sub = ada_gl.groups.create({"name": "sub", "path": "sub", "parent_id": g.id})
g.members.create({"user_id": bob.id, "access_level": gitlab.const.GUEST_ACCESS})
sub.members.create({"user_id": bob.id, "access_level": gitlab.const.MAINTAINER_ACCESS})
same(roles(sub.members.list(get_all=True)), [("ada", 50), ("bob", 40)])
same(roles(sub.members_all.list(get_all=True)), [("ada", 50), ("bob", 40)])
same(sub.members_all.get(ada.id).access_level, 50)
sub.members.delete(bob.id)
same(sub.members_all.get(bob.id).access_level, 10)
did("added, changed and removed members")

club = new_group("club", visibility="public")
bob_gl.groups.get(club.id).accessrequests.create()
asked = club.accessrequests.list(get_all=True)
same([r.username for r in asked], ["bob"])
asked[0].approve(access_level=gitlab.const.REPORTER_ACCESS)
same(asked[0].access_level, 20)
same(club.members.get(bob.id).access_level, 20)
open_house = new_project("open-house", visibility="public")
bob_gl.projects.get(open_house.id).accessrequests.create()
open_house.accessrequests.delete(bob.id)
same(open_house.accessrequests.list(get_all=True), [])
did("asked for access, approved and denied")

token = p.access_tokens.create({"name": "robot", "scopes": ["api"], "access_level": 40, "expires_at": day(30)})
same((token.name, token.scopes, token.access_level, token.expires_at, token.active), ("robot", ["api"], 40, day(30), True))
robot = client(token.token)
robot.auth()
same((robot.user.id, robot.user.bot), (token.user_id, True))
same(robot.projects.get(p.id).permissions["project_access"]["access_level"], 40)
same([t.id for t in p.access_tokens.list(get_all=True)], [token.id])
rotated = gl.http_post(f"/projects/{p.id}/access_tokens/{token.id}/rotate")
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    robot.auth()
p.access_tokens.delete(rotated["id"])
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    client(rotated["token"]).auth()
of_group = g.access_tokens.create({"name": "reader", "scopes": ["read_api"], "access_level": 20, "expires_at": day(30)})
same(client(of_group.token).groups.get(sub.id).full_path, "people/sub")
of_group.delete()
same([t.active for t in g.access_tokens.list(get_all=True, state="active")], [])
did("made, used, rotated and revoked access tokens")

deploy = p.deploytokens.create({"name": "puller", "scopes": ["read_repository"], "username": "pull", "expires_at": day(30) + "T00:00:00Z"})
same((deploy.name, deploy.username, deploy.scopes, deploy.revoked, deploy.expired), ("puller", "pull", ["read_repository"], False, False))
assert deploy.token and deploy.expires_at.startswith(day(30))
same([t.id for t in p.deploytokens.list(get_all=True)], [deploy.id])
assert "token" not in p.deploytokens.get(deploy.id).attributes
of_group = g.deploytokens.create({"name": "all", "scopes": ["read_repository"]})
same([t.id for t in gl.deploytokens.list(get_all=True)], [deploy.id, of_group.id])
deploy.delete()
of_group.delete()
same(p.deploytokens.list(get_all=True), [])
did("made and deleted deploy tokens")

other = new_project("keyed")
key = p.keys.create({"title": "host", "key": KEYS[0], "can_push": True})
same((key.title, key.can_push), ("host", True))
other.keys.enable(key.id)
same([(k.id, k.can_push) for k in other.keys.list(get_all=True)], [(key.id, False)])
key.title = "the host"
key.save()
same(other.keys.get(key.id).title, "the host")
same([k.id for k in gl.deploykeys.list(get_all=True)], [key.id])
key.delete()
same(p.keys.list(get_all=True), [])
did("added, enabled and removed deploy keys")

same([b.name for b in p.protectedbranches.list(get_all=True)], ["main"])
p.branches.create({"branch": "release/1", "ref": "main"})
made = p.protectedbranches.create({"name": "release/*", "push_access_level": gitlab.const.NO_ACCESS, "merge_access_level": gitlab.const.MAINTAINER_ACCESS})
same([(x["access_level"], x["access_level_description"]) for x in made.push_access_levels], [(0, "No one")])
same(p.protectedbranches.get("release/*").merge_access_levels[0]["access_level"], 40)
with refused(exc.GitlabCreateError, 403, "403 Forbidden - You are not allowed to push code to protected branches on this project."):
    p.files.create({"file_path": "x", "branch": "release/1", "content": "x", "commit_message": "x"})
made.delete()
tags = p.protectedtags.create({"name": "v*", "create_access_level": gitlab.const.MAINTAINER_ACCESS})
same((tags.name, tags.create_access_levels[0]["access_level"]), ("v*", 40))
same(p.tags.create({"tag_name": "v1", "ref": "main"}).protected, True)
p.protectedtags.delete("v*")
same(p.protectedtags.list(get_all=True), [])
did("protected branches and tags")

p.pushrules.create({"commit_message_regex": "^[a-z]+: ", "max_file_size": 1})
rules = p.pushrules.get()
same((rules.commit_message_regex, rules.max_file_size, rules.deny_delete_tag), ("^[a-z]+: ", 1, False))
rules.deny_delete_tag = True
rules.save()
with refused(exc.GitlabDeleteError, 403, "403 Forbidden - You cannot delete a tag"):
    p.tags.delete("v1")
rules.delete()
p.tags.delete("v1")
did("set push rules")

kinds = {e.event_type for e in p.audit_events.list(get_all=True)}
assert {"project_created", "member_created", "project_access_token_created", "deploy_key_added", "protected_branch_created"} <= kinds, kinds
did("read audit events of the project")
