"""Shared helpers of the scenarios.

The URL of the server, the token of root and other values are in the environment.
A scenario prints what it did; a failed assert ends it.
"""

import contextlib
import datetime
import os

import gitlab

URL = os.environ["COMPAT_URL"]
ROOT = os.environ["COMPAT_TOKEN"]
PASSWORD = os.environ["COMPAT_PASSWORD"]
HIDDEN = os.environ["COMPAT_HIDDEN"]  # the value of secret variables, which no log may contain
KEYS = os.environ["COMPAT_KEYS"].splitlines()  # public SSH keys
PICTURE = bytes.fromhex(os.environ["COMPAT_PICTURE"])


def client(token=ROOT, **options):
    """Returns a client that uses the token as a personal access token."""
    return gitlab.Gitlab(URL, private_token=token, **options)


def new_user(gl, username, **more):
    """Creates a confirmed user."""
    return gl.users.create({
        "username": username, "name": "Name of " + username, "email": username + "@example.org",
        "password": PASSWORD, "skip_confirmation": True, **more,
    })


def new_token(user, *scopes):
    """Creates a personal access token of the user, as root."""
    return user.personal_access_tokens.create({"name": " ".join(scopes), "scopes": list(scopes)})


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


@contextlib.contextmanager
def refused(error, code, message):
    """Checks that the block raises exactly this error of the client."""
    got = None
    try:
        yield
    except gitlab.exceptions.GitlabError as e:
        got = e
    assert got is not None, f"the call went well, want {error.__name__} {code}"
    assert type(got) is error, f"{type(got).__name__}: {got}"
    assert (got.response_code, got.error_message) == (code, message), (got.response_code, got.error_message)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def recent(text):
    """Reports whether a time in the format of the API is a few minutes old at most."""
    at = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
    age = now() - at
    return datetime.timedelta(seconds=-1) < age < datetime.timedelta(minutes=5)


def day(ahead):
    """Returns the date in a number of days, in the format of the API."""
    return (now() + datetime.timedelta(days=ahead)).strftime("%Y-%m-%d")


def did(text):
    print("did:", text, flush=True)
