#!/bin/sh
# An observer: appends the host's JSON for each call to a file. One call is one line.
# Usage in the configuration: command: [sh, ./log.sh, FOLDER], writable: [FOLDER]
set -eu
exec 9>>"$1/calls.jsonl"
flock 9
cat >&9
