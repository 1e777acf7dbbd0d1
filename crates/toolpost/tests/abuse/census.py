"""What the machine holds on behalf of one host: processes, mounts, control groups, descriptors, memory.

Other tests and other hosts run beside this one, so everything is attributed. A process belongs to the host if it
descends from it, or if the folder of the host's place stands in its mounts, its command line or its current directory;
so orphans and daemons are found too, whoever adopted them.
"""

import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def _read(path):
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def parents():
    """Every process of the machine, with its parent."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = _read(f"/proc/{name}/stat")
            if stat:
                # The name in brackets may hold anything, brackets included.
                state, parent = stat[stat.rindex(b")") + 2 :].split()[:2]
                if state not in (b"Z", b"X"):
                    found[int(name)] = int(parent)
    return found


def descendants(pid, known=None):
    known = known or parents()
    found, news = set(), {pid}
    while news:
        news = {child for child, parent in known.items() if parent in news} - found
        found |= news
    return found


def processes_of(folder, pid=None, but=()):
    """Processes that belong to a host, itself not counted; each with its command line, for messages."""
    known = parents()
    found = descendants(pid, known) if pid else set()
    mark = str(folder).encode()
    for one in known:
        if one in (os.getpid(), pid) or one in found or one in but:
            continue
        if mark in _read(f"/proc/{one}/mountinfo") or mark in _read(f"/proc/{one}/cmdline"):
            found.add(one)
        elif _link(f"/proc/{one}/cwd").startswith(str(folder)):
            found.add(one)
    return {
        one: _read(f"/proc/{one}/cmdline").replace(b"\0", b" ").decode(errors="replace") for one in found - set(but)
    }


def mounts_of(folder, pid):
    """Mounts in our own namespace and in the host's that name the place. There must be none."""
    mark = str(folder)
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    lines += _read(f"/proc/{pid}/mountinfo").decode().splitlines() if pid else []
    return [line for line in lines if mark in line]


def mount_count(pid):
    """Mounts that the host sees, without the disks of a soak that runs beside it in the same namespace."""
    lines = _read(f"/proc/{pid}/mountinfo").splitlines()
    return sum(b" toolpost-soak " not in line for line in lines)


def cgroups():
    """Every control group of every hierarchy."""
    found = set()
    for top, folders, _ in os.walk(CGROUPS):
        found.update(os.path.join(top, name) for name in folders)
    return found


def cgroups_of(pid):
    """Control groups that the host of this process id has made: it stands in their names."""
    return {path for path in cgroups() if os.path.basename(path).startswith("toolpost-") and f"-{pid}-" in path}
