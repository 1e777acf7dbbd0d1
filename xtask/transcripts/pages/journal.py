"""A journal that grows on the page, and others that are damaged, cut off, or left by a host that was killed."""

from stage import MAIN, BlockStage, PageStage, PlaceStage

NOTES = "# Notes\n\nThe lathe holds the work.\nThe toolpost holds the tool.\n"
THREE_CALLS = """\
toolpost call --mode edits write_file path=hello.txt content=hello
toolpost call --mode edits write_file path=hello.txt content=hullo
toolpost call read_file path=hello.txt
"""
# Its triggers forbid changes, so they are dropped.
DAMAGE = """\
import pathlib, sqlite3
[journal] = pathlib.Path("~/.local/state/toolpost").expanduser().glob("*/journal.db")
copy = sqlite3.connect("copy.db")
sqlite3.connect(journal).backup(copy)
for name, in copy.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
    copy.execute(f"DROP TRIGGER {name}")
copy.execute("UPDATE record SET body = replace(body, 'write_file', 'move_file') WHERE seq = 4")
copy.execute("DELETE FROM record WHERE seq = 6")
copy.commit()
"""
# Like an attacker who cuts off the end and puts the triggers back.
CUT = """\
import pathlib, sqlite3
[journal] = pathlib.Path("~/.local/state/toolpost").expanduser().glob("*/journal.db")
database = sqlite3.connect(journal)
triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
for name, _ in triggers:
    database.execute(f"DROP TRIGGER {name}")
for table in ("record", "facet"):
    database.execute(f"DELETE FROM {table} WHERE seq > (SELECT max(seq) - 2 FROM record)")
for _, sql in triggers:
    database.execute(sql)
database.commit()
"""
# The host hashes a file that takes it minutes; without its content the next host is quick.
KILL = """\
truncate -s 40G large.bin
toolpost serve --no-prompt --http 127.0.0.1:0 >serve.log 2>&1 &
until grep -q 'try it' serve.log; do sleep 0.05; done
url=$(grep -o 'http://[^/]*/tools' serve.log | head -n 1)
auth="Authorization: Bearer $(cat ~/.local/state/toolpost/*/token)"
# It is deferred, so it has to be shown first.
curl "$url/file_info" -H "$auth" >/dev/null
curl "$url/file_info/call?background=true" -H "$auth" --json '{"path":"large.bin"}'
kill -9 $!
truncate -s 0 large.bin
toolpost serve --no-prompt --http 127.0.0.1:0 >serve.log 2>&1 &
until toolpost journal tail -n 1 | grep -q 'files.file_info succeeded'; do sleep 0.05; done
kill $!
"""

STAGE = PageStage(
    places={
        MAIN: PlaceStage(files={"notes.md": NOTES}),
        "chain": PlaceStage(files={"~/damage.py": DAMAGE}, setup=THREE_CALLS),
        "cut": PlaceStage(files={"~/cut.py": CUT}, setup=THREE_CALLS),
        "crashed": PlaceStage(setup=KILL),
    },
    blocks={
        "toolpost journal search --tool": BlockStage(
            setup="toolpost call --mode sandboxed shell command='curl -sS http://localhost:8080/'",
            waits=("toolpost journal tail --follow",),
        ),
        "toolpost journal tail -n 3\n": BlockStage(
            setup="""toolpost call run_code 'code=read_file("notes.md")'""",
        ),
        "toolpost journal prune": BlockStage(reason="needs records that are ninety days old"),
        "toolpost journal verify\n": BlockStage(place="chain"),
        "toolpost journal verify --journal copy.db": BlockStage(place="chain", setup="python3 ~/damage.py"),
        "toolpost journal seal": BlockStage(
            place="cut", before={"toolpost journal verify --head": "python3 ~/cut.py"}
        ),
        "toolpost journal tail -n 4          #": BlockStage(place="crashed"),
    },
)
