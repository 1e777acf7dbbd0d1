"""The record of a host: raw rows of the database, and every command and format that reads it."""

import json
import sqlite3

FORMATS = ("agent-tool", "jsonl", "a2e-audit")


def save_record(group, name):
    """Captures the raw rows and the exports of a place whose host has ended."""
    group.save(f"{name}/rows", rows(group.place.data_dir / "journal.db"))
    for form in FORMATS:
        group.run(f"{name}/export-{form}", "journal", "export", "--format", form)
    group.run(f"{name}/verify", "journal", "verify")
    group.run(f"{name}/verify-json", "journal", "verify", "--json")


def rows(path):
    """The schema and all rows of every table. Bodies that are JSON are given as JSON."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
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


def capture(group):
    pass
