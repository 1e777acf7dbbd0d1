"""Patches in the form that models write."""

PATCH = "*** Begin Patch\n*** {verb} File: {path}\n{body}*** End Patch\n"


def add(path, text):
    return PATCH.format(verb="Add", path=path, body="".join(f"+{line}\n" for line in text.splitlines()))


def update(path, old, new):
    return PATCH.format(verb="Update", path=path, body=f"@@\n-{old}\n+{new}\n")


def delete(path):
    return PATCH.format(verb="Delete", path=path, body="")
