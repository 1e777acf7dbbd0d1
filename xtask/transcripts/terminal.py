"""A bash in which the commands of a page run one after another, as in a terminal of its reader.

Folders, variables and background jobs carry over from command to command. A terminal with a person at it is a real one, so
that the host asks its questions there.
"""

import contextlib
import fcntl
import os
import re
import select
import shlex
import signal
import subprocess
import termios
import time
from pathlib import Path

COMMAND_SECONDS = 60
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class CommandTimeout(Exception):
    pass


class CommandOutput:
    """What a command printed, and its background jobs print still: the part that was not read yet."""

    def __init__(self, output, start=0):
        self._output, self._read = output, start

    def unread(self):
        return _plain(self._output.read_bytes()[self._read :])

    def mark_read(self):
        self._read = self._output.stat().st_size

    def is_running(self):
        return False


class StartedCommand(CommandOutput):
    """A command that runs beside others."""

    def __init__(self, pid, output, start):
        super().__init__(output, start)
        self.pid = pid

    def is_running(self):
        """Whether it has not ended; the bash may not have waited for it yet."""
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        return state.rsplit(")", 1)[1].split()[0] != "Z"

    def interrupt(self, seconds=20):
        """Ends it as Ctrl-C does."""
        if self.is_running():
            os.killpg(self.pid, signal.SIGINT)
            wait_until(lambda: not self.is_running(), seconds)
        if self.is_running():
            os.killpg(self.pid, signal.SIGKILL)


class Terminal:
    """One bash. `folder` is where its outputs are kept."""

    def __init__(self, folder, environment, start_folder, has_person=False):
        folder.mkdir(parents=True)
        self._folder, self._count, self._status = folder, 0, 0
        self._person = _PersonsTerminal(folder / "person.out") if has_person else None
        reader, writer = os.pipe()
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-s"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Its job control takes the terminal that is its standard error.
            stderr=self._person.slave if self._person else subprocess.DEVNULL,
            cwd=start_folder,
            env=environment,
            pass_fds=(writer,),
            start_new_session=True,
            preexec_fn=self._person.take_over if self._person else None,
        )
        os.close(writer)
        self._answers, self._buffer = reader, b""
        self._control = writer
        # Every background job gets a process group, and interrupts reach it.
        self._send("set -m")

    def run(self, command, seconds=COMMAND_SECONDS):
        """Runs a command to its end; gives its exit code and its output."""
        script, output = self._files(command)
        self._send(
            f"(exit {self._status}); source {script} </dev/null >{output} 2>&1 {self._control}>&-;"
            f" echo $? >&{self._control}"
        )
        answer = self._answer(seconds)
        if answer is None:
            raise CommandTimeout(f"`{command}` did not end in {seconds} s:\n{_plain(output.read_bytes())}")
        self._status = int(answer)
        return self._status, CommandOutput(output)

    def start(self, command):
        """Starts a command beside those that follow."""
        script, output = self._files(f"exec {command}" if command.startswith("toolpost ") else command)
        report = f"echo $BASHPID >&{self._control}; exec {self._control}>&-"
        if self._person:
            # A host asks only if it is in the foreground, so this bash waits for it.
            device, output = self._person.device, self._person.output
            self._send(f"( {report}; source {script} ) <{device} >{device} 2>&1")
        else:
            self._send(f"( {report}; source {script} ) </dev/null >{shlex.quote(str(output))} 2>&1 &")
        start = output.stat().st_size
        return StartedCommand(int(self._answer(COMMAND_SECONDS)), output, start)

    def type(self, text):
        self._person.type(text)

    def close(self):
        """Ends the bash and every process of it that is left."""
        with contextlib.suppress(OSError):
            self._bash.stdin.close()
        for kind, seconds in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
            for pid in self._processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, kind)
            wait_until(lambda: self._bash.poll() is not None and not self._processes(), seconds)
        self._bash.wait()
        os.close(self._answers)
        if self._person:
            self._person.close()

    def _files(self, command):
        self._count += 1
        script, output = self._folder / f"{self._count}.sh", self._folder / f"{self._count}.out"
        script.write_text(command + "\n", encoding="utf-8")
        output.touch()
        return shlex.quote(str(script)), output

    def _send(self, line):
        self._bash.stdin.write(line.encode() + b"\n")
        self._bash.stdin.flush()

    def _answer(self, seconds):
        """The next line that bash writes to the control pipe; nothing if none comes in time."""
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            rest = end - time.monotonic()
            if rest <= 0 or not select.select([self._answers], [], [], rest)[0]:
                return None
            read = os.read(self._answers, 4096)
            if not read:
                return None
            self._buffer += read
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _processes(self):
        """The living processes of this session."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
                    if int(fields[3]) == self._bash.pid and fields[0] != "Z":
                        found.append(int(entry.name))
        return found


class _PersonsTerminal:
    """A pseudo terminal whose output is copied to a file, so that it is read like any other output."""

    def __init__(self, output):
        self.output = output
        self._master, slave = os.openpty()
        termios.tcsetwinsize(slave, (50, 240))
        self.device, self.slave = os.ttyname(slave), slave
        output.touch()
        self._copier = subprocess.Popen(["cat"], stdin=self._master, stdout=output.open("wb"), stderr=subprocess.DEVNULL)

    def take_over(self):
        """Makes it the terminal of the session of the calling process."""
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self._master, text.encode())

    def close(self):
        self._copier.kill()
        self._copier.wait()
        os.close(self.slave)
        os.close(self._master)


def _plain(output):
    return _ESCAPES.sub("", output.decode(errors="replace"))


def wait_until(condition, seconds):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    return True
