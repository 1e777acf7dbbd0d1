"""Runs the commands that the pages of the docs show, and compares what they print with what the pages show.

    python3 xtask/transcripts/transcripts.py --binary PATH [--page NAME …] [--write]

See README.md beside this file.
"""

import argparse
import importlib
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from markdown_page import MarkdownPage
from page_play import PagePlay
from place import binary_folder
from unstaged import UNSTAGED

ROOT = Path(__file__).resolve().parents[2]
PAGES = Path(__file__).parent / "pages"


def read_pages():
    """All pages with `console` blocks, by name."""
    pages = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        page = MarkdownPage(path, str(path.relative_to(ROOT)))
        if page.console_blocks():
            pages["README" if path.parent == ROOT else path.stem] = page
    return pages


def staged_names():
    return sorted(path.stem.replace("_", "-") for path in PAGES.glob("*.py") if path.stem != "__init__")


def check_table(pages):
    """What is wrong with the stages and the table of pages without one."""
    staged = set(staged_names())
    for name in pages:
        if (name in staged) == (name in UNSTAGED):
            yield f"`{pages[name].name}` needs a stage in {PAGES.name}/ or a line in unstaged.py, and not both"
    for name in sorted((staged | set(UNSTAGED)) - set(pages)):
        yield f"there is no page `{name}` with console blocks"


def play(page, name, binary):
    """Plays a page in a folder of its own; gives the report."""
    stage = importlib.import_module(f"pages.{name.replace('-', '_')}").STAGE
    missing = [program for program in ("bash", "curl", *stage.programs) if not shutil.which(program)]
    if missing:
        sys.exit(f"the page {name} needs {', '.join(missing)}")
    folder = Path(tempfile.mkdtemp(prefix="toolpost-page-")).resolve()
    try:
        performance = PagePlay(page, stage, folder, binary_folder(binary, folder))
        try:
            performance.run()
        except Exception:
            performance.report.faults.append(f"{page.name}: {traceback.format_exc()}")
        finally:
            performance.close()
        return performance.report
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    # A test that takes too long is ended so; what it started has to end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--page", action="append", help="only this page; may be repeated")
    parser.add_argument("--write", action="store_true", help="write the real outputs into the pages")
    parser.add_argument("--list", action="store_true", help="print the names of the pages that are played")
    options = parser.parse_args()
    pages = read_pages()
    wrong = list(check_table(pages))
    if wrong:
        sys.exit("\n".join(wrong))
    if options.list:
        print("\n".join(staged_names()))
        return
    if options.binary is None or not options.binary.is_file():
        parser.error(f"there is no binary at {options.binary}")
    unknown = set(options.page or []) - set(staged_names())
    if unknown:
        parser.error(f"no stage for {', '.join(sorted(unknown))}")
    is_good = True
    for name in options.page or staged_names():
        started = time.monotonic()
        report = play(pages[name], name, options.binary)
        written = pages[name].write() if options.write else 0
        print("".join(f"{fault}\n" for fault in report.faults), end="")
        print(
            f"{name}: {report.compared} outputs compared, {report.ran} commands ran, {len(report.skipped)} skipped,"
            f" {len(report.faults)} faults, {written} outputs written, {time.monotonic() - started:.1f} s",
            flush=True,
        )
        for line, text, reason in report.skipped:
            print(f"  skipped line {line}: {text.splitlines()[0]}: {reason}")
        is_good &= not report.faults
    if not is_good:
        sys.exit(1)


if __name__ == "__main__":
    main()
