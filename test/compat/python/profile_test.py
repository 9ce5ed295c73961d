"""User profiles, with python-gitlab: emails, keys, follows, status, attributes."""

from compat import KEYS, URL, client, day, did, new_token, new_user, recent, refused, same
from gitlab import exceptions as exc

gl = client()
gl.auth()
ada = new_user(gl, "ada")
bob = new_user(gl, "bob")
own = client(new_token(ada, "api").token)
own.auth()
me = own.user

same((me.id, me.username, me.email, me.web_url), (ada.id, "ada", "ada@example.org", URL + "/ada"))
assert "is_admin" not in me.attributes and "note" not in me.attributes, me.attributes
assert gl.user.is_admin is True and gl.user.username == "root"
did("read the current user")

mine = me.emails.create({"email": "mine@example.org"})
same((mine.email, mine.confirmed_at), ("mine@example.org", None))
given = ada.emails.create({"email": "given@example.org", "skip_confirmation": True})
assert recent(given.confirmed_at)
same([e.email for e in me.emails.list(get_all=True)], ["mine@example.org", "given@example.org"])
same([e.id for e in ada.emails.list(get_all=True)], [mine.id, given.id])
same(me.emails.get(given.id).email, "given@example.org")
with refused(exc.GitlabCreateError, 400, {"email": ["has already been taken"]}):
    me.emails.create({"email": "bob@example.org"})
with refused(exc.GitlabListError, 403, "403 Forbidden"):
    own.users.get(bob.id, lazy=True).emails.list(get_all=True)
mine.delete()
ada.emails.delete(given.id)
same(me.emails.list(get_all=True), [])
did("added, listed and deleted emails")

first = me.keys.create({"title": "laptop", "key": KEYS[0] + " ada@laptop", "expires_at": day(30) + "T00:00:00Z"})
same((first.title, first.key, first.usage_type), ("laptop", KEYS[0] + " ada@laptop", "auth_and_signing"))
assert first.expires_at.startswith(day(30)) and recent(first.created_at)
second = ada.keys.create({"title": "given", "key": KEYS[1]})
same([k.id for k in me.keys.list(get_all=True)], [first.id, second.id])
same([k.title for k in ada.keys.list(get_all=True)], ["laptop", "given"])
assert ada.keys.get(second.id).key == KEYS[1] and me.keys.get(first.id).title == "laptop"
same(gl.keys.get(first.id).user["username"], "ada")
with refused(exc.GitlabCreateError, 400, {"fingerprint_sha256": ["has already been taken"]}):
    bob.keys.create({"title": "stolen", "key": KEYS[0]})
with refused(exc.GitlabCreateError, 400, {"key": ["is invalid"]}):
    me.keys.create({"title": "broken", "key": "ssh-ed25519 AAAA"})
first.delete()
second.delete()
with refused(exc.GitlabGetError, 404, "404 Key Not Found"):
    me.keys.get(first.id)
did("added, listed and deleted SSH keys")

followed = own.users.get(bob.id)
assert followed.is_followed is False
same(followed.follow()["username"], "bob")
with refused(exc.GitlabFollowError, 304, ""):
    followed.follow()
same([u.username for u in bob.followers_users.list(get_all=True)], ["ada"])
same([u.username for u in ada.following_users.list(get_all=True)], ["bob"])
followed = own.users.get(bob.id)
same((followed.followers, followed.is_followed), (1, True))
same(followed.unfollow()["username"], "bob")
with refused(exc.GitlabUnfollowError, 304, ""):
    followed.unfollow()
same(bob.followers_users.list(get_all=True), [])
did("followed and unfollowed")

status = me.status.get()
assert not status.message
status.message, status.emoji = "a <b>break</b>", "coffee"
status.save()
seen = ada.status.get()
same((seen.message, seen.emoji, seen.message_html), ("a <b>break</b>", "coffee", "a &lt;b&gt;break&lt;/b&gt;"))
did("set a status")

ada.customattributes.set("team.name", "red / blue")
same(ada.customattributes.get("team.name").value, "red / blue")
same([(a.key, a.value) for a in ada.customattributes.list(get_all=True)], [("team.name", "red / blue")])
same(gl.users.get(ada.id, with_custom_attributes=True).custom_attributes, [{"key": "team.name", "value": "red / blue"}])
ada.customattributes.delete("team.name")
with refused(exc.GitlabGetError, 404, "404 Custom Attribute Not Found"):
    ada.customattributes.get("team.name")
did("set and deleted a custom attribute")

seen = {a.username: a.last_activity_on for a in gl.user_activities.list(get_all=True)}
same(seen, {"root": day(0), "ada": day(0)})
same(gl.user_activities.list(get_all=True, query_parameters={"from": day(1)}), [])
did("listed activities")
