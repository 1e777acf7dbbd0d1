"""Drives a binary through every face and result kind, and saves what it prints and answers as text files.

    python3 xtask/captures/capture.py --binary PATH --out FOLDER

Two runs of one binary give equal folders. See README.md beside this file.
"""

import argparse
import shutil
import sys
import time
import traceback
from pathlib import Path

import a2a_captures
import a2e_captures
import approval_captures
import cli_captures
import http_captures
import journal_captures
import mcp_captures
import recovery_captures
import result_captures
import settings_captures
import setup_captures
from normalise import Normaliser
from place import Ground, Ran

GROUPS = {
    "cli": cli_captures.capture,
    "setup": setup_captures.capture,
    "settings": settings_captures.capture,
    "results": result_captures.capture,
    "http": http_captures.capture,
    "a2e": a2e_captures.capture,
    "mcp": mcp_captures.capture,
    "a2a": a2a_captures.capture,
    "approvals": approval_captures.capture,
    "recovery": recovery_captures.capture,
    "journal": journal_captures.capture,
}


class CaptureGroup:
    """One folder of captures, and the place its hosts and commands run in."""

    def __init__(self, name, place, out, normaliser):
        self.place, self.normaliser = place, normaliser
        self._out, self.count = out / name, 0

    def save(self, name, content):
        """Saves a text, a command that has ended or a JSON value as one capture file."""
        path = self._out / (name + (".txt" if isinstance(content, (str, Ran)) else ".json"))
        if path.exists():
            raise RuntimeError(f"two captures are called {path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.normaliser.start_file().page(content), encoding="utf-8")
        self.count += 1

    def run(self, name, *words, **options):
        """Captures a command without the trusted configuration."""
        ran = self.place.run(*words, **options)
        self.save(name, ran)
        return ran

    def run_configured(self, name, *words, **options):
        """Captures a command with the trusted configuration of the place."""
        return self.run(name, *words, *self.place.words, **options)

    def keep_token(self):
        """Has the host's own token replaced in every capture."""
        token = (self.place.data_dir / "token").read_text().strip()
        self.normaliser.add_literal(token, "<token>")


def run_group(name, ground, out):
    normaliser = Normaliser()
    place = ground.place(name)
    normaliser.add_literal(str(ground.folder), "<place>")
    normaliser.add_literal(str(Path(sys.executable).resolve().parent), "<python>")
    group = CaptureGroup(name, place, out, normaliser)
    started = time.monotonic()
    try:
        GROUPS[name](group)
    finally:
        place.close()
    print(f"{name}: {group.count} captures in {time.monotonic() - started:.1f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--only", action="append", choices=GROUPS, help="capture only this group; may be repeated")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"there is no binary at {options.binary}")
    ground = Ground(options.binary)
    failed = []
    try:
        for name in options.only or GROUPS:
            shutil.rmtree(options.out / name, ignore_errors=True)
            try:
                run_group(name, ground, options.out)
            except Exception:
                traceback.print_exc()
                failed.append(name)
    finally:
        ground.remove()
    if failed:
        sys.exit(f"groups that did not end: {', '.join(failed)}")


if __name__ == "__main__":
    main()
