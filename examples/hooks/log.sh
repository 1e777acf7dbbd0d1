#!/bin/sh
# An observer: appends each call, as the host tells it, to a file. One call is one line of JSON.
# Usage in the configuration: command: [sh, ./log.sh, FOLDER], writable: [FOLDER]
set -eu
exec 9>>"$1/calls.jsonl"
flock 9
cat >&9
