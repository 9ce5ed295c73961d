"""Users with python-gitlab: create, read, change, list, states, delete."""

import urllib.request

from compat import PASSWORD, PICTURE, URL, client, did, new_token, new_user, recent, refused, same
from gitlab import exceptions as exc

gl = client()

# Create and read.
ada = gl.users.create({
    "username": "ada", "name": "Ada L. ✓", "email": "ada@example.org", "password": PASSWORD, "skip_confirmation": True,
    "bio": "counts", "location": "London", "organization": "Engines", "skype": "ada.s", "linkedin": "ada-l", "twitter": "@ada",
    "website_url": "https://ada.example.org", "projects_limit": 7, "can_create_group": False, "external": True,
    "private_profile": True, "public_email": "ada@example.org", "theme_id": 3, "color_scheme_id": 2,
    "provider": "ldapmain", "extern_uid": "uid=ada",
})
want = {
    "username": "ada", "name": "Ada L. ✓", "email": "ada@example.org", "state": "active", "locked": False, "is_admin": False,
    "bio": "counts", "location": "London", "organization": "Engines", "skype": "ada.s", "linkedin": "ada-l", "twitter": "@ada",
    "website_url": "https://ada.example.org", "projects_limit": 7, "can_create_group": False, "external": True,
    "private_profile": True, "public_email": "ada@example.org", "theme_id": 3, "color_scheme_id": 2,
    "identities": [{"provider": "ldapmain", "extern_uid": "uid=ada", "saml_provider_id": None}],
    "web_url": URL + "/ada", "avatar_url": None, "bot": False, "two_factor_enabled": False, "followers": 0, "following": 0,
}
for user in (ada, gl.users.get(ada.id)):
    got = {key: user.attributes[key] for key in want}
    same(got, want)
    assert recent(user.created_at) and recent(user.confirmed_at), (user.created_at, user.confirmed_at)
    same(user.created_by["username"], "root")
assert "password" not in ada.attributes and PASSWORD not in str(ada.attributes)
did("created and read a user with every attribute")

ada.identityproviders.delete("ldapmain")
same(gl.users.get(ada.id).identities, [])
did("deleted an identity")

# Change: save sends email, name and username each time, too.
ada.bio, ada.name, ada.admin, ada.location = "new bio", "Countess", True, ""
ada.save()
same((ada.bio, ada.name, ada.is_admin, ada.location, ada.email), ("new bio", "Countess", True, None, "ada@example.org"))
gl.users.update(ada.id, {"email": ada.email, "name": ada.name, "username": "ada.l", "admin": False})
ada = gl.users.get(ada.id)
same((ada.username, ada.is_admin, ada.bio), ("ada.l", False, "new bio"))
did("changed a user")

# Avatars go as multipart forms.
cleo = new_user(gl, "cleo", avatar=PICTURE)
assert cleo.confirmed_at is not None, "a boolean of the form was lost"
with urllib.request.urlopen(cleo.avatar_url) as picture:
    assert picture.headers["Content-Type"] == "image/png" and picture.read() == PICTURE
ada.avatar, ada.bio = PICTURE, "with a picture"
ada.save()
assert ada.avatar_url.startswith(URL) and ada.bio == "with a picture", ada.attributes
with refused(exc.GitlabCreateError, 400, {"avatar": [
        "file format is not supported. Please try one of the following supported formats: image/png, image/jpeg, image/gif, image/webp"]}):
    new_user(gl, "badpicture", avatar=b"<html></html>")
did("uploaded avatars")

# Refused requests.
with refused(exc.GitlabCreateError, 409, "Email has already been taken"):
    gl.users.create({"username": "other", "name": "Other", "email": "CLEO@example.org", "password": PASSWORD})
with refused(exc.GitlabCreateError, 409, "Username has already been taken"):
    gl.users.create({"username": "Cleo", "name": "Other", "email": "other@example.org", "password": PASSWORD})
with refused(exc.GitlabCreateError, 400, "email is missing, username is missing"):
    gl.users.create({"name": "Other", "password": PASSWORD})
with refused(exc.GitlabCreateError, 400, {"email": ["is invalid"], "password": ["is too short (minimum is 8 characters)"]}):
    gl.users.create({"username": "other", "name": "Other", "email": "nowhere", "password": "short"})
with refused(exc.GitlabUpdateError, 404, "404 User Not Found"):
    gl.users.update(cleo.id, {"email": cleo.email, "name": cleo.name, "username": "root"})
with refused(exc.GitlabGetError, 404, "404 User Not Found"):
    gl.users.get(987654)
did("was refused what is wrong")

# Lists. The ghost is a user, too.
for name in ("dan", "eva", "fay"):
    new_user(gl, name)
names = ["root", "ghost", "ada.l", "cleo", "dan", "eva", "fay"]
pages = gl.users.list(iterator=True, per_page=3, order_by="id", sort="asc")
same((pages.total, pages.total_pages, pages.per_page, pages.current_page, pages.prev_page, pages.next_page), (7, 3, 3, 1, None, 2))
same(len(pages), 7)
same([u.username for u in pages], names)
same((pages.current_page, pages.prev_page, pages.next_page), (3, 2, None))
same([u.username for u in gl.users.list(get_all=True, per_page=2)], names[::-1])
same([u.username for u in gl.users.list(page=2, per_page=2, order_by="username", sort="asc")], sorted(names)[2:4])
head = gl.users.head()
assert head["X-Total"] == "7" and head["Content-Type"] == "application/json", head
did("listed users by offset")

keyset = gl.users.list(iterator=True, pagination="keyset", order_by="id", sort="asc", per_page=3)
assert keyset.total is None
same([u.username for u in keyset], names)
always = client(pagination="keyset", order_by="id", per_page=2)
same([u.username for u in always.users.list(iterator=True)], names[::-1])
did("listed users by keyset")


def listed(**filters):
    return sorted(u.username for u in gl.users.list(get_all=True, **filters))


dan = gl.users.list(username="DAN", get_all=True)[0]
dan.customattributes.set("team", "red")
gl.users.list(username="eva", get_all=True)[0].block()
same(listed(search="ev"), ["eva"])
same(listed(search="fay@example.org"), ["fay"])
same(listed(blocked=True), ["eva"])
same(listed(active=True, exclude_internal=True), ["ada.l", "cleo", "dan", "fay", "root"])
same(listed(external=True), ["ada.l"])
same(listed(two_factor="enabled"), [])
same(listed(admins=True), ["root"])
same(listed(custom_attributes={"team": "red"}), ["dan"])
same(listed(custom_attributes={"team": "blue"}), [])
assert listed(created_before="2020-01-01") == [] and len(listed(created_after="2020-01-01T00:00:00Z")) == 7
with refused(exc.GitlabListError, 400, "order_by does not have a valid value"):
    listed(order_by="age")
did("listed users by filters")

# States.
self = client(new_token(dan, "api").token)
self.auth()
assert dan.block() is True and dan.state == "blocked"
with refused(exc.GitlabDeactivateError, 403, "403 Forbidden - A blocked user cannot be deactivated by the API"):
    dan.deactivate()
with refused(exc.GitlabHttpError, 403, "403 Forbidden - Your account has been blocked."):
    self.http_get("/user")
assert dan.unblock() is True and dan.state == "active"
self.auth()
try:
    dan.deactivate()
    raise AssertionError("an active user was deactivated")
except exc.GitlabDeactivateError as e:
    assert e.response_code == 403 and "has been active in the past" in e.error_message, e
assert dan.ban() is True and gl.users.get(dan.id).state == "banned"
assert dan.unban() is True and gl.users.get(dan.id).state == "active"
with refused(exc.GitlabBlockError, 403, "403 Forbidden"):
    self.users.get(cleo.id, lazy=True).block()
did("blocked, unblocked, banned and unbanned")

# Delete.
dan.delete()
with refused(exc.GitlabGetError, 404, "404 User Not Found"):
    gl.users.get(dan.id)
with refused(exc.GitlabDeleteError, 404, "404 User Not Found"):
    gl.users.delete(dan.id)
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    self.auth()
gl.users.delete(cleo.id, hard_delete=True)
assert "cleo" not in listed() and "dan" not in listed()
did("deleted users")
