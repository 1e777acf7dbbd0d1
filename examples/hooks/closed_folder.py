"""A guard: stops calls that would write into a folder of the workspace.

Usage in the configuration: command: [python3, ./closed_folder.py, FOLDER]
The host starts it in the workspace, so relative paths mean the same here as in the tools.
"""

import json
import os
import sys


def written_paths(tool, arguments):
    """The paths that a call of a native file tool would write."""
    if tool == "move_file":
        return [arguments["from"], arguments["to"]]
    if tool == "apply_patch":
        return list(paths_of_patch(arguments["patch"]))
    return [arguments["path"]]


def paths_of_patch(patch):
    """The files that the headers of a patch name, in both forms that the tool accepts."""
    markers = ("--- a/", "+++ b/", "--- ", "+++ ", "rename from ", "rename to ")
    begin = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
    for line in patch.splitlines():
        for marker in begin + markers:
            if line.startswith(marker):
                yield line[len(marker):].split("\t")[0].strip()
                break


def main():
    closed = os.path.realpath(sys.argv[1])
    call = json.load(sys.stdin)
    for path in written_paths(call["tool"]["name"], call["arguments"]):
        real = os.path.realpath(path)
        if real == closed or real.startswith(closed + os.sep):
            # Exit code 2 stops the call. The model gets the text on standard error.
            print(f"`{path}` lies in `{sys.argv[1]}`, which a build step writes: change its source instead",
                  file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
