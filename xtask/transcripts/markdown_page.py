"""A page of the docs: its code blocks, and in `console` blocks the commands with the output that is shown below each."""

from dataclasses import dataclass, field

PROMPT = "$ "


@dataclass
class ShownCommand:
    """A command and its shown output. Lines of the page count from 1."""

    text: str
    line: int
    output: list[str] = field(default_factory=list)
    output_line: int = 0


@dataclass
class CodeBlock:
    language: str
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def beginning(self):
        """The text that a stage names the block by."""
        return "\n".join(self.lines).removeprefix(PROMPT)

    def commands(self):
        """The commands of the block. Every line of a `sh` block belongs to a command without output."""
        found = []
        is_open = False
        for number, line in enumerate(self.lines, self.line + 1):
            if is_open:
                found[-1].text += "\n" + line
            elif self.language == "console" and not line.startswith(PROMPT):
                if not found:
                    raise ValueError(f"line {number}: a console block begins with a command")
                found[-1].output.append(line)
                continue
            elif line.strip():
                found.append(ShownCommand(line.removeprefix(PROMPT), number))
            else:
                continue
            is_open = is_continued(found[-1].text)
            found[-1].output_line = number + 1
        return found


def is_continued(command):
    """Whether bash would read on: an open quote, or a backslash or pipe at the end."""
    quote = ""
    escaped = False
    for character in command:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#":
            # A comment, or a `#` in a word: neither opens a quote in these pages.
            break
    return bool(quote) or escaped or command.rstrip().endswith("|")


class MarkdownPage:
    """A file with code blocks, and the changes of shown outputs that are to be written into it."""

    def __init__(self, path, name):
        self.path, self.name = path, name
        self.blocks = _code_blocks(path.read_text(encoding="utf-8").split("\n"))
        self._changes = []

    def console_blocks(self):
        return [block for block in self.blocks if block.language == "console"]

    def change(self, line, old_lines, new_lines):
        """Notes that lines from this one on are to be replaced."""
        if old_lines != new_lines:
            self._changes.append((line, old_lines, new_lines))

    def write(self):
        """Writes the noted changes. The page is read again, because an editor may have changed it meanwhile."""
        lines = self.path.read_text(encoding="utf-8").split("\n")
        written = 0
        for line, old_lines, new_lines in sorted(self._changes, key=lambda change: -change[0]):
            if lines[line - 1 : line - 1 + len(old_lines)] == old_lines:
                lines[line - 1 : line - 1 + len(old_lines)] = new_lines
                written += 1
            else:
                print(f"{self.name}:{line}: the page was changed meanwhile; not written")
        if written:
            self.path.write_text("\n".join(lines), encoding="utf-8")
        return written


def _code_blocks(lines):
    blocks = []
    current = None
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if current is None:
                current = CodeBlock(line.removeprefix("```").strip(), number)
            else:
                blocks.append(current)
                current = None
        elif current is not None:
            current.lines.append(line)
    return blocks
