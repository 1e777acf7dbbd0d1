"""Plays a page: runs its commands on its stage and compares what they print with what the page shows."""

import re
import socket
import time
from dataclasses import dataclass, field

from comparison import ShownOutput
from place import Place
from stage import HOST_TERMINAL, SHELL, BlockStage
from terminal import COMMAND_SECONDS, CommandTimeout, wait_until
from varying import Bindings

HOST = "toolpost serve"
# How long an output of something that goes on may take.
OUTPUT_SECONDS = 30
STILL_SECONDS = 5
# No command begins so.
NOTHING = "\0"


@dataclass
class PlayReport:
    """What became of the commands of a page."""

    compared: int = 0
    # Commands of blocks that are lists of commands: they have to succeed.
    ran: int = 0
    skipped: list[tuple[int, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class PagePlay:
    """One page. `close` ends everything that was started for it."""

    def __init__(self, page, stage, folder, binary):
        self._page, self._stage = page, stage
        self._folder, self._binary = folder, binary
        self._bindings = Bindings()
        self._places, self._outputs, self._late = {}, {}, []
        self._ports = dict(zip(stage.ports, _free_ports(len(stage.ports)), strict=True))
        self.report = PlayReport()

    def run(self):
        for block, block_stage in self._cast():
            try:
                self._play_block(block, block_stage)
            except (CommandTimeout, RuntimeError) as fault:
                self._fault(block.line, str(fault))
        for command, started, place in self._late:
            wait_until(lambda started=started: not started.is_running(), COMMAND_SECONDS)
            self._compare(command.output, command.output_line, lambda: place.as_shown(started.unread()))  # noqa: B023

    def close(self):
        for place in self._places.values():
            place.close()

    def _cast(self):
        """The blocks that run, each with its stage."""
        named = {}
        for beginning, block_stage in self._stage.blocks.items():
            found = [block for block in self._page.blocks if block.beginning.startswith(beginning)]
            if len(found) == 1:
                named[found[0].line] = block_stage
            else:
                self._fault(0, f"the stage names a block `{beginning}`; the page has {len(found)} that begin so")
        for block in self._page.blocks:
            if block.line in named or block.language == "console":
                yield block, named.get(block.line, BlockStage())

    def _play_block(self, block, stage):
        if stage.reason:
            for command in block.commands() if block.language == "console" else []:
                self.report.skipped.append((command.line, command.text, stage.reason))
            return
        place = self._place(stage.place)
        if stage.setup:
            place.prepare(stage.setup)
        for shown, bash in stage.learn.items():
            real = place.prepare(bash).strip()
            if not real or not self._bindings.bind(shown, real):
                self._fault(block.line, f"`{shown}` cannot stand for `{real}`")
        if stage.saves:
            place.write(stage.saves, "".join(f"{line}\n" for line in block.lines))
        elif stage.continues or stage.watches:
            self._compare_rest(block, stage, place)
        else:
            self._play_commands(block, stage, place)
        if stage.cleanup:
            place.prepare(stage.cleanup)

    def _place(self, name):
        if name not in self._places:
            stage = self._stage.places[name]
            folder = self._folder / name
            place = self._places[name] = Place(stage, folder, self._binary, self._stage.person, self._ports)
            place.begin()
        return self._places[name]

    def _play_commands(self, block, stage, place):
        commands = block.commands()
        is_list = not any(command.output for command in commands)
        for command in commands:
            reason = next((reason for start, reason in stage.skip.items() if command.text.startswith(start)), "")
            if reason:
                self.report.skipped.append((command.line, command.text, reason))
            else:
                self._play_command(command, stage, place, is_list)

    def _play_command(self, command, stage, place, is_list):
        text, unknown = self._bindings.as_real(command.text)
        if unknown:
            self._fault(command.line, f"no earlier output shows {', '.join(unknown)}")
        text = place.as_real(text)
        is_host = command.text.startswith(HOST) and not re.search("--stdio|&", command.text)
        is_host |= command.text.startswith(stage.serves or NOTHING)
        name = stage.terminal or (HOST_TERMINAL if is_host else SHELL)
        terminal = place.terminal(name)
        for start, bash in stage.before.items():
            if command.text.startswith(start):
                place.prepare(bash, name)
        if is_host:
            started = place.start_host(re.sub(r"\s+#.*", "", text), name)
            # Without a shown banner the host only has to listen.
            self._compare_started(command, started, place, is_list or not command.output)
        elif command.text.startswith(stage.waits or NOTHING):
            started = self._outputs[command.text] = terminal.start(text)
            if stage.meanwhile:
                place.prepare(stage.meanwhile)
            self._compare_started(command, started, place, is_list)
        elif command.text.startswith(stage.late or NOTHING):
            self._late.append((command, terminal.start(text), place))
        else:
            code, output = terminal.run(text)
            self._outputs[command.text] = output
            self._wait_for_background(text, command, stage, output)
            is_background = text.rstrip().endswith("&")
            self._compare_ended(command, code, output.unread(), place, is_list or is_background)

    def _compare_ended(self, command, code, real, place, is_list):
        if not is_list:
            self._compare(command.output, command.output_line, lambda: place.as_shown(real))
        elif code:
            self._fault(command.line, f"`{command.text}` ended with {code}:\n{real}")
        else:
            self.report.ran += 1

    def _compare_started(self, command, started, place, is_list):
        """Compares what a command prints that goes on, once it is as shown or takes too long."""
        if is_list:
            self.report.ran += 1
            return
        self._compare(
            command.output, command.output_line, lambda: place.as_shown(started.unread()), OUTPUT_SECONDS
        )
        started.mark_read()

    def _compare_rest(self, block, stage, place):
        if stage.watches:
            started = place.host(HOST_TERMINAL)
        else:
            [started] = [one for text, one in self._outputs.items() if text.startswith(stage.continues)]
        if stage.prompt:
            if not wait_until(lambda: stage.prompt in started.unread(), OUTPUT_SECONDS):
                self._fault(block.line, f"no prompt `{stage.prompt}` in:\n{started.unread()}")
            place.terminal(HOST_TERMINAL).type(stage.types)
        if stage.continues:
            wait_until(lambda: not started.is_running(), COMMAND_SECONDS)
        # Questions on the terminal have blank lines around them.
        read_real = lambda: place.as_shown(started.unread()).lstrip("\n")
        self._compare(block.lines, block.line + 1, read_real, OUTPUT_SECONDS)
        started.mark_read()

    def _compare(self, shown_lines, line, read_real, seconds=0):
        """Compares, again and again while there is time, and notes what the page should show."""
        self.report.compared += 1
        shown = ShownOutput(shown_lines, line, self._bindings)
        if _becomes(shown, read_real, seconds):
            return
        differences, lines = shown.align(read_real())
        for difference in differences:
            self._fault(difference.line, str(difference))
        self._page.change(line, shown_lines, lines)

    def _wait_for_background(self, text, command, stage, output):
        """A server in the background takes its time to listen, another command to print what it is awaited for."""
        if text.rstrip().endswith("&"):
            for port in self._ports.values():
                if str(port) in text:
                    wait_until(lambda port=port: _listens(port), OUTPUT_SECONDS)
            for start, awaited in stage.awaits.items():
                if command.text.startswith(start):
                    wait_until(lambda awaited=awaited: awaited in output.unread(), OUTPUT_SECONDS)

    def _fault(self, line, text):
        self.report.faults.append(f"{self._page.name}:{line}: {text}")


def _becomes(shown, read_real, seconds):
    """Whether the output is as shown before the time is over, or before it has not changed for long."""
    end, last, changed = time.monotonic() + seconds, None, time.monotonic()
    while True:
        real = read_real()
        if shown.matches(real):
            return True
        now = time.monotonic()
        if real != last:
            last, changed = real, now
        if now > end or (real.strip() and now - changed > STILL_SECONDS):
            return False
        time.sleep(0.05)


def _free_ports(count):
    """Ports that are free now, held together so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
