"""The parameters that python-gitlab declares: the server has each, or lists it in internal/api/parameters.txt.

TestClientCoverage checks those of another client, and TestRefusedParameterList that what is listed as refused is.
"""

import inspect
import json
import re
import urllib.request

import gitlab.v4.objects
from compat import URL, did
from gitlab import mixins

LIST = "../../internal/api/parameters.txt"

# Parameters that the public API does not have, or no longer has.
GONE = {
    "GET /groups/{id}/deploy_tokens": {"scopes"},
    "GET /projects/{id}/deploy_tokens": {"scopes"},
    "GET /users": {"status"},
    "POST /groups/{id}/invitations": {"tasks_project_id", "tasks_to_be_done"},
    "POST /groups/{id}/members": {"tasks_to_be_done"},
    "POST /projects/user/{user_id}": {"builds_enabled", "only_allow_merge_if_build_succeeds", "public", "wall_enabled"},
    "POST /projects/{id}/invitations": {"tasks_project_id", "tasks_to_be_done"},
    "POST /projects/{id}/members": {"tasks_to_be_done"},
    "POST /projects/{id}/milestones": {"state_event"},
    "POST /projects/{id}/repository/commits/{sha}/discussions/{discussion_id}/notes": {"position"},
    "POST /snippets": {"lifetime"},
    "PUT /application/settings": {
        "created_at", "domain_blacklist", "domain_blacklist_enabled", "domain_whitelist", "id", "instance_statistics_visibility_private", "updated_at",
    },
    "PUT /projects/{id}/hooks/{hook_id}": {"wiki_events"},
}
# Bound under another name.
ALIASES = {"allow_maintainer_to_push"}

with urllib.request.urlopen(URL + "/api/v4/openapi.json") as response:
    document = json.load(response)


def properties(schema, depth=0):
    """Returns the names of the properties of a schema and of all its alternatives."""
    if not schema or depth > 8:
        return set()
    found = set(schema.get("properties", {}))
    if "$ref" in schema:
        found |= properties(document["components"]["schemas"][schema["$ref"].split("/")[-1]], depth + 1)
    for part in schema.get("allOf", []) + schema.get("oneOf", []) + schema.get("anyOf", []):
        found |= properties(part, depth + 1)
    return found


def bound(operation):
    """Returns the names of the parameters of an endpoint, without the brackets of lists and objects."""
    names = {p["name"] for p in operation.get("parameters", [])}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        names |= properties(content.get("schema"))
    return {name.split("[")[0] for name in names}


endpoints = []  # method, path, pattern, length of the literal parts, names
for path, operations in document["paths"].items():
    path = path.removeprefix("/api/v4")
    literals = re.split(r"\{[^}]*\}", path)
    pattern = re.compile("[^/]+".join(map(re.escape, literals)))
    for method, operation in operations.items():
        endpoints.append((method.upper(), path, pattern, len("".join(literals)), bound(operation)))

listed = set()
with open(LIST, encoding="utf-8") as lines:
    for line in lines:
        words = line.split(None, 4)
        if len(words) == 5 and words[0] != "#":
            listed |= {(words[0], words[1], name) for name in words[2].split(",")}

checked, missing = 0, []


def check(method, path, names):
    """Checks that the endpoint, if it exists, has all the names."""
    global checked
    matching = [e for e in endpoints if e[0] == method and e[2].fullmatch(path)]
    if not matching:
        return
    _, path, _, _, have = max(matching, key=lambda e: e[3])
    for name in names:
        name = name.split("[")[0]
        checked += 1
        if name not in have | ALIASES | GONE.get(f"{method} {path}", set()) and (method, path, name) not in listed:
            missing.append(f"{method} {path} {name}")


for _, manager in inspect.getmembers(gitlab.v4.objects, inspect.isclass):
    path = getattr(manager, "_path", None)
    if not path:
        continue
    path = re.sub(r"\{[^}]*\}", "1", path)
    if issubclass(manager, mixins.ListMixin):
        check("GET", path, manager._list_filters)
    if issubclass(manager, mixins.CreateMixin):
        attributes = manager._create_attrs
        check("POST", path, attributes.required + attributes.optional + attributes.exclusive)
    if issubclass(manager, mixins.UpdateMixin):
        attributes = manager._update_attrs
        check("PUT", path + "/1", attributes.required + attributes.optional + attributes.exclusive)
        check("PUT", path, attributes.required + attributes.optional + attributes.exclusive)
assert not missing, missing
assert checked > 1000, checked
did(f"looked up {checked} parameters")
