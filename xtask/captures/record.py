"""The database of a journal, read beside a host or without one."""

import json
import sqlite3
import time

SETTLE_SECONDS = 3
# The newest record of a call, and the newest record that the table of search keys holds.
_NEWEST_CALL = "SELECT max(seq) FROM record WHERE kind IN ('accepted', 'asked', 'started', 'ended')"
_NEWEST_FACET = "SELECT max(seq) FROM facet"


def settle(path):
    """Waits until the table of search keys holds every call.

    A host fills that table when it has nothing else to write, so its rows at a given moment depend on the clock.
    """
    end = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < end:
        database = _open(path)
        try:
            [[call]], [[facet]] = database.execute(_NEWEST_CALL).fetchall(), database.execute(_NEWEST_FACET).fetchall()
        except sqlite3.Error:
            return
        finally:
            database.close()
        if call is None or (facet or 0) >= call:
            return
        time.sleep(0.02)


def rows(path):
    """The schema and all rows of every table. Bodies that are JSON are given as JSON."""
    database = _open(path)
    try:
        schema = database.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
        found = {"schema": [dict(zip(("type", "name", "sql"), one)) for one in schema], "tables": {}}
        found["pragmas"] = {
            name: database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("user_version", "application_id", "page_size", "journal_mode", "auto_vacuum")
        }
        for kind, table, _ in schema:
            if kind == "table":
                cursor = database.execute(f'SELECT * FROM "{table}" ORDER BY 1')
                names = [column[0] for column in cursor.description]
                found["tables"][table] = [dict(zip(names, map(_readable, one))) for one in cursor]
        return found
    finally:
        database.close()


def _open(path):
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _readable(value):
    if isinstance(value, bytes):
        text = value.hex()
        if len(value) == 16:
            return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
        return text
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def open_calls(path):
    """How many calls have no end."""
    database = _open(path)
    begun = "SELECT count(DISTINCT invocation) FROM record WHERE kind IN ('accepted', 'asked', 'started')"
    ended = "invocation NOT IN (SELECT invocation FROM record WHERE kind = 'ended' AND invocation IS NOT NULL)"
    try:
        return database.execute(f"{begun} AND {ended}").fetchone()[0]
    finally:
        database.close()
