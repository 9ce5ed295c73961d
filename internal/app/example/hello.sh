#!/bin/sh
# Greets everybody named, or the world.
if [ $# -eq 0 ]; then
	set -- world
fi
for name in "$@"; do
	echo "Hello, $name!"
done
