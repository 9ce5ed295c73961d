"""The users of the scenarios about groups, projects and repositories."""

import time

from compat import client, new_token, new_user

gl = client()
ada = new_user(gl, "ada")
bob = new_user(gl, "bob")
ada_gl = client(new_token(ada, "api").token)
bob_gl = client(new_token(bob, "api").token)


def new_project(path, **more):
    """Creates a project as Ada whose default branch, main, has a README."""
    return ada_gl.projects.create({"name": path, "path": path, "initialize_with_readme": True, **more})


def new_group(path, **more):
    return ada_gl.groups.create({"name": "Group " + path, "path": path, **more})


def eventually(what, so):
    """Waits for background jobs of the server."""
    end = time.monotonic() + 30
    while not so():
        assert time.monotonic() < end, f"after 30 s it is still not so: {what}"
        time.sleep(0.05)


def paths(projects):
    return [p.path_with_namespace for p in projects]
