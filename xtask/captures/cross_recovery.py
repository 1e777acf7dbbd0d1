"""Kills a host of one binary under load and has another binary recover its data directory, in both directions.

    python3 xtask/captures/cross_recovery.py --old PATH --new PATH

Prints a line for each check. Exit code 1 where one failed.
"""

import argparse
import http.client
import json
import sys
import threading
import traceback
from pathlib import Path

import record
import stage
from calls import answer, call, ended, invocation_of
from peer import poll
from place import Ground, Place
from recovery_captures import SLOW, begin

FORMATS = ("jsonl", "agent-tool", "a2e-audit")
LOADERS, ENOUGH_ANSWERS = 4, 60
NAP = {"seconds": 600}


class Checks:
    """What was checked, and what failed."""

    def __init__(self, direction):
        self._direction, self.failed, self.count = direction, [], 0

    def expect(self, what, found, *wanted):
        """Checks that a value is one of those wanted."""
        self.count += 1
        good = found in wanted
        print(f"{'good' if good else 'BAD '}  {self._direction}: {what}" + ("" if good else f": {found!r}, not {wanted!r}"))
        if not good:
            self.failed.append(what)


class Load:
    """Callers that make short calls until their host is gone, and what they were answered."""

    CALLS = (
        ("echo", {"message": "load"}),
        ("read_file", {"path": "notes.txt"}),
        ("read_file", {"path": "missing.txt"}),
        ("read_file", {"path": "secret.txt"}),
        ("count_words", {"path": "notes.txt"}),
        ("write_file", {"path": "desk/load.txt", "content": "x"}),
        ("list_directory", {"path": "hollow"}),
    )

    def __init__(self, host):
        self._host, self.answers = host, {}
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(LOADERS)]
        for thread in self._threads:
            thread.start()

    def _run(self, number):
        made = 0
        while True:
            tool, arguments = self.CALLS[(number + made) % len(self.CALLS)]
            made += 1
            try:
                told = call(self._host.agent, tool, arguments, headers={"Idempotency-Key": f"load-{number}-{made}"})
                self.answers[told["body"]["invocation_id"]] = told["body"]["outcome"]
            except (OSError, http.client.HTTPException, KeyError, TypeError, ValueError):
                return

    def join(self):
        for thread in self._threads:
            thread.join(10)


class Interrupted:
    """The calls that the kill interrupts, by name; each is at a known stage when it comes."""

    def __init__(self, host):
        agent, tenant = host.agent, host.caller(stage.TENANT_TOKEN)
        self.kept = call(agent, "demo__read_preview", {"path": "large.txt"}, "kept")["body"]["artifacts"][0]
        write = lambda name: {"path": f"{name}.txt", "content": name}
        self._remember(host, write("remembered"))
        self.ids = {
            # It runs alone in its session, so the next two of that session wait behind it.
            "running": begin(tenant, "running", "demo__nap", NAP, "execute"),
            "queued": invocation_of(call(tenant, "demo__nap?background=true", NAP, "queued", {"Idempotency-Key": "queued"})),
            "decided": begin(tenant, "decided", "write_file", write("decided"), "await_approval"),
            "allowed-later": begin(agent, "allowed-later", "write_file", write("allowed"), "await_approval"),
            "denied-later": begin(agent, "denied-later", "write_file", write("denied"), "await_approval"),
            "edited-later": begin(agent, "edited-later", "write_file", write("edited"), "await_approval"),
            "secret": begin(agent, "secret", "write_file", write("s") | {"content": stage.SECRET}, "await_approval"),
        }
        answer(host.operator, self.ids["decided"], {"decision": "allow"})
        # The read can end by itself, so it begins last.
        self.ids["read"] = begin(agent, "read", "grep", SLOW, "execute", "timeout=50")

    def _remember(self, host, arguments):
        begun = begin(host.agent, "remembered", "write_file", arguments, "await_approval")
        answer(host.operator, begun, {"decision": "allow", "scope": "remember"})
        ended(host.agent, begun)


def cross(checks, place, killed, next_one):
    """Has `killed` die under load, `next_one` take over, and `killed` start once more on what that left."""
    place.binary = killed
    stage.prepare(place)
    stage.write_long_search(place)
    host = stage.serve(place)
    load = Load(host)
    interrupted = Interrupted(host)
    poll(lambda: len(load.answers) >= ENOUGH_ANSWERS, "the load runs")
    waiting = _waiting(host)
    host.kill()
    load.join()
    sealed = place.run("journal", "seal").stdout.strip()
    for path in (place.workspace / "many").iterdir():
        path.unlink()
    place.write("many/0.txt", "needle\n")

    place.binary = next_one
    checks.expect("the killed journal verifies", place.run("journal", "verify", "--head", sealed).code, 0)
    host = stage.serve(place)
    checks.expect("its health", host.operator.json("GET", "/health")["status"], "ok")
    _check_questions(checks, place, host, interrupted, waiting)
    _check_ends(checks, host, interrupted)
    _check_answers(checks, host, load, interrupted)
    checks.expect("it stops", host.stop(), 0)
    _check_record(checks, place, interrupted, sealed)

    place.binary = killed
    host = stage.serve(place)
    checks.expect("the health of the first binary, back again", host.operator.json("GET", "/health")["status"], "ok")
    known = [_result(host.operator, one)["outcome"] for one in interrupted.ids.values()]
    checks.expect("the first binary knows every end", all(known), True)
    checks.expect("the first binary stops", host.stop(), 0)
    checks.expect("the first binary verifies", place.run("journal", "verify", "--head", sealed).code, 0)


def _waiting(host):
    return sorted(one["ask_id"] for one in host.operator.json("GET", "/approvals")["approvals"])


def _result(peer, invocation):
    return ended(peer, invocation)["body"]["result"]


def _check_questions(checks, place, host, interrupted, before):
    """Questions wait on under their ids, and their answers count; a call with a secret cannot go on."""
    operator, ids = host.operator, interrupted.ids
    after = sorted(set(before) - {ids["secret"]})
    poll(lambda: len(_waiting(host)) >= len(after), "the questions wait again")
    checks.expect("the questions that wait", _waiting(host), after)
    answer(operator, ids["allowed-later"], {"decision": "allow"})
    answer(operator, ids["denied-later"], {"decision": "deny", "feedback": "no"})
    edited = {"path": "edited.txt", "content": "by a person", "create_directories": True}
    answer(operator, ids["edited-later"], {"decision": "allow", "arguments": edited})
    checks.expect("allowed later", _result(operator, ids["allowed-later"])["outcome"], "succeeded")
    denied = _result(operator, ids["denied-later"])
    checks.expect("denied later", (denied["outcome"], denied["error"]["class"]), ("denied", "approval_rejected"))
    checks.expect("edited later", _result(operator, ids["edited-later"])["outcome"], "succeeded")
    checks.expect("the edited file", (place.workspace / "edited.txt").read_text(), "by a person")
    checks.expect("the decided call", _result(operator, ids["decided"])["outcome"], "succeeded")
    checks.expect("the decided file", (place.workspace / "decided.txt").read_text(), "decided")


def _check_ends(checks, host, interrupted):
    """Ends as `docs/journal.md` promises them under "After a crash"."""
    operator, ids = host.operator, interrupted.ids
    running = _result(operator, ids["running"])
    checks.expect("a call that ran", (running["outcome"], running["error"]["class"]), ("unknown", "outcome_unknown"))
    for name, what in (("queued", "a call that had not started"), ("secret", "a question with a secret")):
        end = _result(operator, ids[name])
        checks.expect(what, (end["outcome"], end["error"]["code"]), ("canceled", "restart"))
    read = _result(operator, ids["read"])
    checks.expect("a read runs again", (read["outcome"], read["structured_content"]["files"] != []), ("succeeded", True))


def _check_answers(checks, host, load, interrupted):
    """What was answered before the kill is still the answer, and the host goes on working."""
    agent, operator = host.agent, host.operator
    wrong = [one for one, outcome in load.answers.items() if _result(operator, one)["outcome"] != outcome]
    checks.expect(f"{len(load.answers)} answers of the load", wrong, [])
    again = call(host.caller(stage.TENANT_TOKEN), "demo__nap?background=true", NAP, "running", {"Idempotency-Key": "running"})
    checks.expect("a repeat of the call that ran", again["body"].get("outcome"), "unknown")
    remembered = {"path": "remembered.txt", "content": "remembered"}
    passed = call(agent, "write_file?patience=0.1", remembered)["body"]["outcome"]
    checks.expect("a remembered rule lets pass", passed, "succeeded")
    kept = agent.exchange("GET", f"/artifacts/{interrupted.kept['id']}")
    checks.expect("a kept result", (kept["status"], len(kept["body"])), (200, interrupted.kept["size"]))
    checks.expect("a new call", call(agent, "demo__add", {"a": 1, "b": 2})["body"]["outcome"], "succeeded")


def _check_record(checks, place, interrupted, sealed):
    verified = place.run("journal", "verify", "--json", "--head", sealed)
    checks.expect("the journal verifies", verified.code, 0)
    checks.expect("calls without an end", record.open_calls(place.data_dir / "journal.db"), 0)
    for form in FORMATS:
        exported = place.run("journal", "export", "--format", form)
        values = exported.json_values()[1]
        checks.expect(f"an export as {form}", (exported.code, len(values) > ENOUGH_ANSWERS), (0, True))
        text = json.dumps(values)
        missing = [name for name, one in interrupted.ids.items() if one not in text]
        checks.expect(f"calls that are not in it ({form})", missing, [])
    saved = place.run("journal", "replay", "last", "--save", str(place.folder / "session.json"))
    checks.expect("a cassette of the last session", saved.code, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", required=True, type=Path)
    parser.add_argument("--new", required=True, type=Path)
    options = parser.parse_args()
    ground = Ground(options.old, options.new)
    old, new = ground.binaries
    failed = []
    try:
        for direction, killed, next_one in (("old then new", old, new), ("new then old", new, old)):
            checks = Checks(direction)
            place = Place(ground.folder / direction.replace(" ", "-"), killed)
            try:
                cross(checks, place, killed, next_one)
            except Exception:
                traceback.print_exc()
                checks.failed.append("it did not come to an end")
            finally:
                place.close()
            failed += [f"{direction}: {what}" for what in checks.failed]
            print(f"{direction}: {checks.count} checks, {len(checks.failed)} failed", flush=True)
    finally:
        ground.remove()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
