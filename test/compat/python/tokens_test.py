"""Access tokens and sudo with python-gitlab."""

import gitlab
from compat import URL, client, day, did, new_token, new_user, recent, refused, same
from gitlab import exceptions as exc

gl = client()
ada = new_user(gl, "ada")

made = ada.personal_access_tokens.create({"name": "deploy", "scopes": ["api", "read_user"], "expires_at": day(30)})
same((made.name, made.scopes, made.expires_at, made.active, made.revoked, made.user_id), ("deploy", ["api", "read_user"], day(30), True, False, ada.id))
assert made.token.startswith("svcpat-") and recent(made.created_at)
own = client(made.token)
own.auth()
same(own.user.username, "ada")
same(own.http_get("/personal_access_tokens/self")["id"], made.id)
bearer = gitlab.Gitlab(URL, oauth_token=made.token)
bearer.auth()
same(bearer.user.username, "ada")
did("made a token and used it")

for _ in range(4):
    new_token(ada, "read_api")
tokens = gl.personal_access_tokens.list(user_id=ada.id, get_all=True, per_page=2)
assert len(tokens) == 5 and {t.user_id for t in tokens} == {ada.id}
assert all("token" not in t.attributes for t in tokens)
same([t.id for t in own.personal_access_tokens.list(get_all=True, search="deploy")], [made.id])
assert recent(own.personal_access_tokens.list(get_all=True, search="deploy")[0].last_used_at)
with refused(exc.GitlabListError, 403, "403 Forbidden"):
    own.personal_access_tokens.list(user_id=1, get_all=True)
did("listed tokens")

rotated = gl.http_post(f"/personal_access_tokens/{made.id}/rotate")
assert rotated["id"] != made.id and rotated["name"] == "deploy" and rotated["expires_at"] == day(7), rotated["expires_at"]
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    own.auth()
own = client(rotated["token"])
own.auth()
gl.personal_access_tokens.delete(rotated["id"])
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    own.users.list(get_all=True)
same(gl.personal_access_tokens.list(user_id=ada.id, revoked=True, get_all=True)[-1].id, rotated["id"])
did("rotated and revoked a token")

with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    client("svcpat-no-such-token").auth()
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    gitlab.Gitlab(URL).auth()
with refused(exc.GitlabCreateError, 400, "scopes does not have a valid value"):
    new_token(ada, "everything")
with refused(exc.GitlabCreateError, 400, {"expires_at": ["can't be in the past"]}):
    ada.personal_access_tokens.create({"name": "old", "scopes": ["api"], "expires_at": day(-1)})
reads = client(new_token(ada, "read_api").token)
reads.auth()
with refused(exc.GitlabCreateError, 403, "insufficient_scope"):
    reads.user.emails.create({"email": "more@example.org"})
did("was refused what is wrong")

made = ada.impersonationtokens.create({"name": "support", "scopes": ["api"], "expires_at": day(30)})
same((made.name, made.impersonation, made.expires_at), ("support", True, day(30)))
behind = client(made.token)
behind.auth()
same(behind.user.username, "ada")
same([t.id for t in ada.impersonationtokens.list(state="active", get_all=True)], [made.id])
one = ada.impersonationtokens.get(made.id)
assert one.active is True and "token" not in one.attributes and recent(one.last_used_at)
made.delete()
with refused(exc.GitlabAuthenticationError, 401, "401 Unauthorized"):
    behind.auth()
assert ada.impersonationtokens.get(made.id).revoked is True
gl.http_put("/application/settings", post_data={"impersonation_enabled": False})
with refused(exc.GitlabCreateError, 404, "404 Not found"):
    ada.impersonationtokens.create({"name": "off", "scopes": ["api"]})
did("made, used, revoked and switched off impersonation tokens")

same(gl.http_get("/user", sudo="ADA")["id"], ada.id)
same(gl.http_get("/user", sudo=ada.id)["username"], "ada")
assert all("email" not in u.attributes for u in gl.users.list(sudo="ada", get_all=True)), "a plain user sees addresses"
ada.emails.create({"email": "more@example.org"})
gl.http_post("/user/emails", post_data={"email": "sudo@example.org"}, sudo="ada")
same([e.email for e in ada.emails.list(get_all=True)], ["more@example.org", "sudo@example.org"])
with refused(exc.GitlabHttpError, 404, "404 User with ID or username 'nobody' Not Found"):
    gl.http_get("/user", sudo="nobody")
plain = client(new_token(ada, "api", "sudo").token)
with refused(exc.GitlabHttpError, 403, "403 Forbidden - Must be admin to use sudo"):
    plain.http_get("/user", sudo="root")
weak = client(new_token(gl.users.get(1), "api").token)
with refused(exc.GitlabHttpError, 403, "insufficient_scope"):
    weak.http_get("/user", sudo="ada")
did("acted as another user")
