#!/bin/sh
# twine publishes and pip installs packages, with a token and with deploy tokens.
set -eu
cd "$HOME"

api() { curl --silent --show-error --fail --header "PRIVATE-TOKEN: $COMPAT_TOKEN" "$@"; }

id=$(api --data 'path=py&visibility=private' "$COMPAT_URL/api/v4/projects" | sed 's/^{"id":\([0-9]*\),.*/\1/')
host=${COMPAT_URL#*://}
mkdir -p "lib/my_lib"
cd lib
printf 'from setuptools import setup\nsetup(name="My.Lib", version="1.0", packages=["my_lib"], python_requires=">=3.8", description="A library")\n' >setup.py
echo 'hello = "hello"' >my_lib/__init__.py
/usr/bin/python3 setup.py -q sdist
token=$(api --data 'name=w&username=writer&scopes[]=write_package_registry' "$COMPAT_URL/api/v4/projects/$id/deploy_tokens" | sed 's/.*"token":"\([^"]*\)".*/\1/')
TWINE_USERNAME=writer TWINE_PASSWORD=$token twine upload --non-interactive --disable-progress-bar --repository-url "$COMPAT_URL/api/v4/projects/$id/packages/pypi" dist/*
if TWINE_USERNAME=__token__ TWINE_PASSWORD=$COMPAT_TOKEN twine upload --non-interactive --disable-progress-bar --repository-url "$COMPAT_URL/api/v4/projects/$id/packages/pypi" dist/*; then
	echo 'a file was published twice'
	exit 1
fi
TWINE_USERNAME=__token__ TWINE_PASSWORD=$COMPAT_TOKEN twine upload --non-interactive --disable-progress-bar --skip-existing --repository-url "$COMPAT_URL/api/v4/projects/$id/packages/pypi" dist/*
token=$(api --data 'name=r&username=reader&scopes[]=read_package_registry' "$COMPAT_URL/api/v4/projects/$id/deploy_tokens" | sed 's/.*"token":"\([^"]*\)".*/\1/')
/usr/bin/python3 -m pip download --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation --dest down \
	--index-url "http://reader:$token@$host/api/v4/projects/$id/packages/pypi/simple" my-lib
cmp dist/*.tar.gz down/*.tar.gz
