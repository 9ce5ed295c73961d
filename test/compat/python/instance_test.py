"""The instance, with python-gitlab: version, variables, settings, audit events, limits."""

import re
import time

from compat import HIDDEN, PASSWORD, client, did, new_token, new_user, recent, refused, same
from gitlab import exceptions as exc

gl = client()
plain = client(new_token(new_user(gl, "plain"), "api").token)

meta = plain.http_get("/metadata")
assert re.fullmatch(r"(17\.1[1-9]|1[89]|[2-9]\d)(\.\d+)+", meta["version"]), meta
same(plain.version(), (meta["version"], meta["revision"]))
did("read the version")

made = gl.variables.create({
    "key": "DEPLOY_KEY", "value": HIDDEN, "variable_type": "file", "masked": True, "protected": True, "raw": True, "description": "for deploys",
})
want = {"key": "DEPLOY_KEY", "value": HIDDEN, "variable_type": "file", "masked": True, "protected": True, "raw": True, "description": "for deploys"}
same(made.attributes, want)
same(gl.variables.get("DEPLOY_KEY").attributes, want)
gl.variables.create({"key": "B", "value": ""})
same([v.key for v in gl.variables.list(iterator=True, per_page=1)], ["DEPLOY_KEY", "B"])
made.value, made.masked = HIDDEN + "2", False
made.save()
changed = gl.variables.get("DEPLOY_KEY")
same((changed.value, changed.masked, changed.protected), (HIDDEN + "2", False, True))
with refused(exc.GitlabCreateError, 400, {"key": ["(B) has already been taken"]}):
    gl.variables.create({"key": "B", "value": "x"})
with refused(exc.GitlabCreateError, 400, {"key": ["can contain only letters, digits and '_'."]}):
    gl.variables.create({"key": "NOT A KEY", "value": "x"})
with refused(exc.GitlabListError, 403, "403 Forbidden"):
    plain.variables.list(get_all=True)
made.delete()
with refused(exc.GitlabGetError, 404, "404 InstanceVariable Not Found"):
    gl.variables.get("DEPLOY_KEY")
did("created, listed, changed and deleted variables")

settings = gl.settings.get()
same((settings.max_personal_access_token_lifetime, settings.default_projects_limit), (365, 100000))
settings.default_projects_limit, settings.user_default_external = 11, True
settings.save()
same((settings.default_projects_limit, settings.user_default_external), (11, True))
user = new_user(gl, "defaults")
same((user.projects_limit, user.external), (11, True))
with refused(exc.GitlabUpdateError, 400, {"minimum_password_length": ["must be greater than or equal to 8"]}):
    gl.settings.update(new_data={"minimum_password_length": 4})
with refused(exc.GitlabGetError, 403, "403 Forbidden"):
    plain.settings.get()
did("read and changed settings")

user.block()
events = gl.audit_events.list(iterator=True, per_page=3)
assert events.total > 8 and len(events) == events.total
events = list(events)
same([e.event_type for e in events[:2]], ["user_blocked", "user_created"])
same([e.id for e in events], sorted((e.id for e in events), reverse=True))
blocked = gl.audit_events.get(events[0].id)
same(blocked.attributes, events[0].attributes)
same((blocked.author_id, blocked.entity_id, blocked.entity_type), (1, user.id, "User"))
assert blocked.details["target_details"] == "defaults" and blocked.details["ip_address"] == "127.0.0.1", blocked.details
assert recent(blocked.created_at)
keyset = gl.audit_events.list(iterator=True, per_page=3, pagination="keyset", order_by="id", sort="desc")
assert keyset.total is None and [e.id for e in keyset] == [e.id for e in events]
of_user = gl.audit_events.list(get_all=True, entity_type="User", entity_id=user.id)
same([e.event_type for e in of_user], ["user_blocked", "user_created"])
scope = gl.audit_events.list(get_all=True, entity_type="Svc::Audit::InstanceScope")
kinds = {e.event_type for e in scope}
same(kinds, {"ci_instance_variable_created", "ci_instance_variable_updated", "ci_instance_variable_deleted", "application_setting_updated"})
assert {e.entity_type for e in scope} == {"Svc::Audit::InstanceScope"} and scope[0].author_name == "Administrator"
assert HIDDEN not in str([e.attributes for e in events]) and PASSWORD not in str([e.attributes for e in events])
same(gl.audit_events.list(get_all=True, created_after="2100-01-01T00:00:00Z"), [])
with refused(exc.GitlabListError, 403, "403 Forbidden"):
    plain.audit_events.list(get_all=True)
with refused(exc.GitlabListError, 400, "entity_type is missing"):
    gl.audit_events.list(get_all=True, entity_id=1)
did("listed audit events")

# The client waits for the time in Retry-After and retries.
gl.settings.update(new_data={
    "throttle_authenticated_api_enabled": True,
    "throttle_authenticated_api_requests_per_period": 2, "throttle_authenticated_api_period_in_seconds": 2,
})
start = time.monotonic()
for _ in range(4):
    plain.http_get("/user")
assert time.monotonic() - start > 0.9, "nothing was limited"
for _ in range(20):
    try:
        plain.http_get("/user", obey_rate_limit=False)
    except exc.GitlabHttpError as e:
        same(e.response_code, 429)
        same(e.error_message, {"error": "This endpoint has been requested too many times. Try again later."})
        break
else:
    raise AssertionError("20 requests at once are within a limit of 2")
gl.settings.update(new_data={"throttle_authenticated_api_enabled": False})
did("kept a rate limit")
