"""Processes that modules start: each is known by its call, carries it in its environment, and ends with it.

A process can leave its group and its session, and can lose its parent; it is then found by what it inherited. One that
lost that too is found because nobody else's it can be: orphans come to the launcher that keeps this process, which has
no other children."""

import _posixsubprocess
import errno
import os
import signal
import subprocess
import threading
import time

from . import current

MARK = "TOOLPOST_CALL"
_SELF = os.getpid()
# When this process began, as the kernel counts.
with open("/proc/self/stat", "rb") as _stat:
    _BEGUN = int(_stat.read().rpartition(b")")[2].split()[19])


class Owner:
    """Whom a process belongs to: a mount, and the call that started it if there was one."""

    def __init__(self, mount, call=None):
        self.mount = mount
        self.call = call

    def mark(self):
        return f"{_SELF}.{self.mount}.{self.call or 0}"


# Held while a process is made, so that nobody sees one whose owner is not written down yet. What is forked has it too, and
# gives it back.
_lock = threading.RLock()
# Process id to its owner's mark. Also of processes that have ended: their sessions and groups may live on.
_started = {}
_parent_adopts = False


def install(parent_adopts):
    """Puts itself between modules and the ways to start a process."""
    global _parent_adopts
    _parent_adopts = parent_adopts
    execute_child = subprocess.Popen._execute_child

    def _execute_child(self, *args, **kwargs):
        mark = _mark()
        if mark is not None and len(args) > 6:
            args = (*args[:6], _marked(args[6], mark), *args[7:])
        return execute_child(self, *args, **kwargs)

    subprocess.Popen._execute_child = _execute_child
    for name in ("posix_spawn", "posix_spawnp"):
        _wrap_spawn(name)
    for name in ("fork", "forkpty"):
        _wrap_fork(name)

    fork_exec = _posixsubprocess.fork_exec

    def fork_and_execute(*args):
        # What `multiprocessing` starts comes past everything above.
        mark = _mark()
        with _lock:
            pid = fork_exec(*args)
            _remember(pid, mark)
        return pid

    _posixsubprocess.fork_exec = fork_and_execute
    if hasattr(subprocess, "_fork_exec"):
        subprocess._fork_exec = fork_and_execute

    def system(command):
        # The one of the C library starts a process that nobody is told about.
        status = subprocess.call(command, shell=True)
        return -status if status < 0 else status << 8

    os.system = system


def _wrap_spawn(name):
    spawn = getattr(os, name, None)
    if spawn is None:
        return

    def wrapped(path, argv, env, *args, **kwargs):
        mark = _mark()
        with _lock:
            pid = spawn(path, argv, _marked(env, mark), *args, **kwargs)
            _remember(pid, mark)
        return pid

    setattr(os, name, wrapped)


def _wrap_fork(name):
    fork = getattr(os, name)

    def wrapped():
        mark = _mark()
        with _lock:
            forked = fork()
            pid = forked[0] if isinstance(forked, tuple) else forked
            if pid != 0:
                _remember(pid, mark)
            elif mark is not None:
                # What it starts belongs to the same call.
                os.environ[MARK] = mark
        return forked

    setattr(os, name, wrapped)


def _mark():
    """Whose the process is that is about to be made. Nobody starts one whose end has come."""
    unit, call = current.unit(), current.call()
    if (call is not None and call.over) or (unit is not None and unit.mount.over):
        raise OSError(errno.ECANCELED, "the call or the session that would start this process has ended")
    return None if unit is None else Owner(unit.mount.number, call.id if call else None).mark()


def _marked(environment, mark):
    if mark is None:
        return environment
    copied = dict(os.environ if environment is None else environment)
    key = os.fsencode(MARK) if any(isinstance(name, bytes) for name in copied) else MARK
    copied[key] = mark if isinstance(key, str) else mark.encode()
    return copied


def _remember(pid, mark):
    if pid and mark is not None:
        with _lock:
            _started[pid] = mark


def forget_call(owner):
    """The call ended by itself. What it left running belongs to its mount from now on."""
    mark, heir = owner.mark(), Owner(owner.mount).mark()
    with _lock:
        for pid in [pid for pid, started in _started.items() if started == mark]:
            if _is_there(pid):
                _started[pid] = heir
            else:
                del _started[pid]


def kill_call(owner, patience=1.0):
    """Ends whatever a call started. Tells whether nothing of it is left."""
    prefix = owner.mark()
    return _kill(lambda mark: mark == prefix, patience)


def kill_mount(number, patience=1.0):
    """Ends whatever the calls of a mount have started."""
    prefix = f"{_SELF}.{number}."
    return _kill(lambda mark: mark.startswith(prefix), patience)


def _kill(is_ours, patience):
    until = time.monotonic() + patience
    quiet = 0
    while True:
        found = _belonging(is_ours)
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        # Whoever was being forked meanwhile is seen in the next round.
        quiet = 0 if found else quiet + 1
        if quiet == 2 or time.monotonic() > until:
            break
        time.sleep(0.002)
    with _lock:
        for pid in [pid for pid, mark in _started.items() if is_ours(mark)]:
            if not _is_there(pid):
                del _started[pid]
    return quiet == 2


def _belonging(is_ours):
    """The living processes that belong to somebody: started for him, descended from those, in their sessions or groups,
    marked, or without a mark where nobody else's it can be: an orphan, or a child of this process that was not started in
    any of the ways that are known."""
    with _lock:
        table = _table()
        started = dict(_started)
    roots = {pid for pid, mark in started.items() if is_ours(mark)}
    others = {pid for pid, mark in started.items() if not is_ours(mark)}
    parent = os.getppid()
    found = set()
    for pid, (ppid, group, session) in table.items():
        if pid == _SELF:
            continue
        mark = _mark_of(pid)
        if pid in roots or (mark is not None and is_ours(mark)):
            found.add(pid)
        elif mark is None and (group in roots or session in roots):
            found.add(pid)
        elif (
            mark is None
            and ((_parent_adopts and ppid == parent) or (ppid == _SELF and pid not in started))
            and group not in others
            and session not in others
        ):
            found.add(pid)
    grew = True
    while grew:
        grew = False
        for pid, (ppid, _, _) in table.items():
            if ppid in found and pid not in found and pid != _SELF:
                found.add(pid)
                grew = True
    return found


def _table():
    """Process id to (parent, group, session) of everybody who is not a zombie and not older than this process: nobody else
    can have been started by it, and a machine may have many."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X") and int(fields[19]) >= _BEGUN:
                table[int(name)] = (int(fields[1]), int(fields[2]), int(fields[3]))
    return table


def _mark_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError:
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(b"TOOLPOST_CALL="):
            return entry.partition(b"=")[2].decode("ascii", "replace")
    return None


def _is_there(pid):
    """Also where only others of its session are left."""
    try:
        os.kill(pid, 0)
        return True
    except PermissionError:
        return True
    except OSError:
        return any(pid in (group, session) for _, group, session in _table().values())
