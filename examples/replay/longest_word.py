#!/usr/bin/env python3
"""A very small agent: finds the longest word in the text files of a workspace, and writes it to a file.

TOOLPOST_URL and TOOLPOST_TOKEN name the host. See README.md in this folder.
"""

import json
import os
import urllib.error
import urllib.request

HOST, TOKEN = os.environ["TOOLPOST_URL"], os.environ["TOOLPOST_TOKEN"]


def call(tool, **arguments):
    """Calls a tool and returns its result, also a failure."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{HOST}/tools/{tool}/call", json.dumps(arguments).encode(), headers)
    try:
        return json.load(urllib.request.urlopen(request, timeout=60))
    except urllib.error.HTTPError as refusal:
        return json.load(refusal)


def main():
    longest = ""
    for file in call("glob", pattern="*.txt")["structured_content"]["files"]:
        read = call("read_file", path=file["path"])
        if read["is_error"]:
            raise SystemExit(read["error"]["message"])
        words = [word for line in read["content"][0]["text"].splitlines() for word in line.split("\t")[-1].split()]
        longest = max([longest, *words], key=len)
    written = call("write_file", path="longest.md", content=longest + "\n")
    print(f"{longest} ({'written' if not written['is_error'] else written['error']['class']})")


if __name__ == "__main__":
    main()
