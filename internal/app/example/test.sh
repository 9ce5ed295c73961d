#!/bin/sh
# Tests the program given, and writes what came of it to report.xml.
program=$1
failed=0
cases=

check() { # name, what the program is given, what it should say
	got=$("$program" $2)
	if [ "$got" = "$3" ]; then
		echo "ok      $1"
		cases="$cases<testcase classname=\"hello\" name=\"$1\"/>"
	else
		echo "not ok  $1: got '$got'"
		cases="$cases<testcase classname=\"hello\" name=\"$1\"><failure message=\"got another greeting\"/></testcase>"
		failed=1
	fi
}

check "greets the world" "" "Hello, world!"
check "greets by name" "Alice" "Hello, Alice!"
check "greets many" "Alice Bob" "Hello, Alice!
Hello, Bob!"

echo "<testsuite name=\"hello\">$cases</testsuite>" > report.xml
exit $failed
