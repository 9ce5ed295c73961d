#!/bin/sh
# npm publishes, installs, tags, deprecates and unpublishes packages.
set -eu
export npm_config_update_notifier=false npm_config_fund=false npm_config_cache="$HOME/cache"
cd "$HOME"

api() { curl --silent --show-error --fail --header "PRIVATE-TOKEN: $COMPAT_TOKEN" "$@"; }
same() { [ "$1" = "$2" ] || { printf 'got %s, want %s\n' "$1" "$2"; exit 1; }; }

id=$(api --data 'path=lib&visibility=private' "$COMPAT_URL/api/v4/projects" | sed 's/^{"id":\([0-9]*\),.*/\1/')
host=${COMPAT_URL#*://}
for name in lib use; do
	mkdir "$name"
	printf '@root:registry=%s/api/v4/projects/%s/packages/npm/\n//%s/api/v4/projects/%s/packages/npm/:_authToken=%s\n' \
		"$COMPAT_URL" "$id" "$host" "$id" "$COMPAT_TOKEN" >"$name/.npmrc"
done

cd lib
echo 'module.exports = "hello"' >index.js
for version in 1.0.0 1.1.0 2.0.0-beta.1; do
	printf '{"name":"@root/lib","version":"%s","description":"A library","main":"index.js"}' "$version" >package.json
	case $version in
	*beta*) npm publish --tag beta ;;
	*) npm publish ;;
	esac
done
if npm publish --tag beta; then
	echo 'a version was published twice'
	exit 1
fi

cd ../use
echo '{"name":"use","version":"1.0.0"}' >package.json
npm install @root/lib
same "$(node -e 'console.log(require("@root/lib"))')" hello
rm -r node_modules
npm ci
same "$(npm view @root/lib version)" 1.1.0
same "$(npm dist-tag ls @root/lib | tr '\n' ' ')" 'beta: 2.0.0-beta.1 latest: 1.1.0 '
npm dist-tag add @root/lib@1.0.0 old
npm install @root/lib@old
npm dist-tag rm @root/lib old
npm deprecate @root/lib@1.0.0 'use 1.1'
same "$(npm view @root/lib@1.0.0 deprecated)" 'use 1.1'
npm unpublish @root/lib@1.0.0 --force
same "$(npm view @root/lib versions --json | tr -d ' \n')" '["1.1.0","2.0.0-beta.1"]'

# The registry of the instance finds the package by its scope.
printf '@root:registry=%s/api/v4/packages/npm/\n//%s/api/v4/packages/npm/:_authToken=%s\n//%s/api/v4/projects/%s/packages/npm/:_authToken=%s\n' \
	"$COMPAT_URL" "$host" "$COMPAT_TOKEN" "$host" "$id" "$COMPAT_TOKEN" >.npmrc
rm -rf node_modules package-lock.json
npm install @root/lib@beta
