"""What a validator wants to know of a module, seen from inside the process that mounted it. Nothing is mounted again:
the mount that serves is the one that is looked at."""

import ast
import asyncio
import inspect
import os
import secrets
import sys
import types

from . import loading
from .plain import plain, shown

# Names the process, so that a validator can tell whether a call cost it its life.
PROCESS = secrets.token_hex(8)
MOST_FILES = 200
MOST_BYTES = 1 << 20
LONGEST_LOOK = 15
LOGGERS = {"logging", "structlog", "loguru"}


def run(mount, request):
    """Answers an `inspect` request: `module` names the module, `observe` asks to note what its tools give back."""
    unit = mount.unit(request["module"])
    looked_at = unit.submit(lambda: report(subject_of(unit), bool(request.get("observe"))))
    return looked_at.result(LONGEST_LOOK)


def subject_of(unit):
    """A mounted unit as `report` takes it."""
    fatal = [problem["message"] for problem in unit.problems if problem["fatal"]]
    minor = [problem["message"] for problem in unit.problems if not problem["fatal"]]
    module = unit.module
    if module is None and any(problem["reason"] == "invalid_entry_point" for problem in unit.problems):
        # It was imported; only what should be called is missing.
        files = {file for file, _ in loading._places.values()}
        module = next((each for each in sys.modules.values() if getattr(each, "__file__", None) in files), None)
    return types.SimpleNamespace(
        module=module,
        problem=fatal[0] if fatal else None,
        minor=minor,
        coordinator=unit.mount.coordinator,
        tools=dict(unit.tools),
        returned=unit.returned,
    )


async def report(subject, observe):
    """Everything about one module. `subject` has `module` (None: it cannot be imported), `problem` (why it is not
    there, or None), `minor` (what else is wrong), `coordinator`, `tools` (by the names they are mounted under) and
    `returned` (a word for what `mount` gave)."""
    found = {"process": PROCESS, "checks": [], "tools": [], "events": [], "observed": observed(subject.tools)}
    found["checks"] = structure(subject)
    if subject.module is None:
        return found
    found["package"] = subject.module.__name__
    found["kind"] = kind(subject.module)
    found["source"] = source(subject.module)
    if subject.problem is None:
        found["tools"] = [about(name, tool) for name, tool in subject.tools.items()]
        found["events"] = await events(subject.coordinator)
    if observe:
        for tool in subject.tools.values():
            watch(tool)
    return found


def structure(subject):
    """Amplifier's own checks, by its names and in its order."""
    if subject.module is None:
        return [failed("module_importable", str(subject.problem))]
    checks = [passed("module_importable", f"`{subject.module.__name__}` is imported")]
    mount = getattr(subject.module, "mount", None)
    if mount is None:
        return [*checks, failed("mount_exists", "there is no `mount`\nhint: add `async def mount(coordinator, config)`")]
    if not callable(mount):
        return [*checks, failed("mount_exists", f"`mount` is a {type(mount).__name__}, which cannot be called")]
    checks += [passed("mount_exists", "`mount` is there"), signature(mount)]
    ready = getattr(subject.module, "on_session_ready", None)
    if ready is not None:
        checks.append(session_ready(ready))
    checks += compliance(subject)
    for name, tool in subject.tools.items():
        checks += of_tool(name, tool)
    return checks


def signature(mount):
    taken = takes(mount)
    if not inspect.iscoroutinefunction(mount):
        return failed("mount_signature", "`mount` is not async\nhint: write `async def mount(coordinator, config)`")
    if taken is not None and taken < 2:
        return failed("mount_signature", f"`mount` takes {taken} of 2 arguments: the coordinator and the configuration")
    return passed("mount_signature", "`mount` is async and takes the coordinator and the configuration")


def session_ready(ready):
    if not inspect.iscoroutinefunction(ready):
        return failed("on_session_ready_async", "`on_session_ready` is not async")
    if takes(ready) == 0:
        return failed("on_session_ready_async", "`on_session_ready` does not take the coordinator")
    return passed("on_session_ready_async", "`on_session_ready` is async and takes the coordinator")


def compliance(subject):
    checks = [protocol(name, tool) for name, tool in subject.tools.items()]
    checks += [failed("protocol_compliance", problem) for problem in subject.minor]
    if not checks and subject.returned == "cleanup":
        message = "`mount` returned something to call at the end and mounted no tool, so there is nothing to serve"
        return [{**passed("protocol_compliance", message), "severity": "warning"}]
    if subject.problem is not None:
        checks.append(failed("protocol_compliance", subject.problem))
    return checks or [failed("protocol_compliance", "`mount` mounted no tool and returned none")]


def protocol(name, tool):
    missing = [part for part in ("name", "description", "execute") if not has(tool, part)]
    if missing:
        return failed("protocol_compliance", f"`{name}`: {type(tool).__name__} has no {' and no '.join(missing)}")
    return passed("protocol_compliance", f"`{name}`: {type(tool).__name__} is a tool")


def of_tool(mounted, tool):
    return [name_of(mounted, tool), description_of(mounted, tool), schema_of(mounted, tool), execute_of(mounted, tool)]


def name_of(mounted, tool):
    name, error = read(tool, "name")
    if error:
        return failed("tool_name", f"`{mounted}`: its name cannot be read: {error}")
    if not isinstance(name, str) or not name:
        return failed("tool_name", f"`{mounted}`: its name must be a text that is not empty, not {shown(repr(name))}")
    return passed("tool_name", f"`{mounted}`: its name is `{name}`")


def description_of(mounted, tool):
    description, error = read(tool, "description")
    if error:
        message = f"`{mounted}`: its description cannot be read: {error}"
        return {**failed("tool_description", message), "severity": "error"}
    if not isinstance(description, str) or not description.strip():
        return failed("tool_description", f"`{mounted}`: it has no description, so models must guess what it does")
    return passed("tool_description", f"`{mounted}`: a description of {len(description)} characters")


def schema_of(mounted, tool):
    schema, error = read(tool, "input_schema")
    if error:
        return failed("tool_input_schema", f"`{mounted}`: its schema cannot be read: {error}")
    if schema is None:
        return failed("tool_input_schema", f"`{mounted}`: it has no `input_schema`, so any input counts as right")
    if not isinstance(schema, dict):
        return failed("tool_input_schema", f"`{mounted}`: its schema is a {type(schema).__name__}, not a dict")
    properties = schema.get("properties")
    count = len(properties) if isinstance(properties, dict) else 0
    return passed("tool_input_schema", f"`{mounted}`: a schema of {count} properties")


def execute_of(mounted, tool):
    execute, error = read(tool, "execute")
    if error or not callable(execute):
        return failed("tool_execute", f"`{mounted}`: it has no `execute` that can be called")
    if not is_async(execute):
        return failed("tool_execute", f"`{mounted}`: `execute` is not async")
    if takes(execute) == 0:
        return failed("tool_execute", f"`{mounted}`: `execute` does not take the input")
    return passed("tool_execute", f"`{mounted}`: `execute` is async and takes the input")


def about(mounted, tool):
    """A tool as the validator goes on with it."""
    name, schema = read(tool, "name")[0], read(tool, "input_schema")[0]
    return {"mounted": mounted, "name": name if isinstance(name, str) else None, "schema": plain(schema)}


def kind(module):
    """What the module says it is, if it does."""
    said = getattr(module, "__amplifier_module_type__", None)
    return {"said": said if said is None else shown(said)}


async def events(coordinator):
    """The events that the module says it emits."""
    try:
        collected = await asyncio.wait_for(coordinator.collect_contributions("observability.events"), 5)
    except Exception:
        return []
    names = [name for given in collected for name in (given if isinstance(given, (list, tuple, set)) else [given])]
    return [shown(name) for name in names[:100]]


def source(module):
    """What the module's own files say: whether it logs, and where it prints."""
    found = {"logs": False, "prints": []}
    for path, shorter in files(module):
        try:
            with open(path, "rb") as file:
                tree = ast.parse(file.read(MOST_BYTES))
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        found["logs"] = found["logs"] or logs(tree)
        found["prints"] += [f"{shorter}:{line}" for line in prints(tree)]
    return found


def files(module):
    """The Python files of a package, or the one file of a module."""
    path = getattr(module, "__file__", None)
    if not path:
        return
    if os.path.basename(path) != "__init__.py":
        yield path, os.path.basename(path)
        return
    root, count = os.path.dirname(path), 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("tests", "__pycache__") and name[0] != ".")
        for name in sorted(names):
            if name.endswith(".py") and count < MOST_FILES:
                count += 1
                full = os.path.join(folder, name)
                yield full, os.path.relpath(full, root)


def logs(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] in LOGGERS for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LOGGERS:
            return True
    return False


def prints(tree):
    """The lines that print to standard output when the module is used, not when it is run as a script."""
    lines, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            if not any(keyword.arg == "file" for keyword in node.keywords):
                lines.append(node.lineno)
        waiting.extend(ast.iter_child_nodes(node))
    return sorted(lines)


def watch(tool):
    """Notes what `execute` gives back and raises from now on, before anything is made of it."""
    execute, error = read(tool, "execute")
    if error or not callable(execute) or hasattr(execute, "toolpost_seen"):
        return

    async def watched(*arguments, **named):
        try:
            result = execute(*arguments, **named)
            result = await result if inspect.isawaitable(result) else result
        except BaseException as problem:
            note(watched, "raised", type(problem).__name__)
            raise
        note(watched, "returned", "ToolResult" if is_result(result) else type(result).__name__)
        return result

    watched.toolpost_seen = {"returned": {}, "raised": {}}
    try:
        tool.execute = watched
    except (AttributeError, TypeError):
        # A tool that takes no attribute is seen only from outside.
        pass


def note(watched, what, word):
    seen = watched.toolpost_seen[what]
    seen[word] = seen.get(word, 0) + 1


def observed(tools):
    """What was noted so far, by the names that tools are mounted under."""
    noted = {name: getattr(getattr(tool, "execute", None), "toolpost_seen", None) for name, tool in tools.items()}
    return {name: seen for name, seen in noted.items() if seen is not None}


def is_result(value):
    kind = getattr(sys.modules.get("amplifier_core"), "ToolResult", None)
    return isinstance(kind, type) and isinstance(value, kind)


def is_async(function):
    inner = function if inspect.isroutine(function) else getattr(type(function), "__call__", function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner)


def takes(function):
    """How many arguments can be given by place. None: it cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return None
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for each in parameters if each.kind in by_place)


def read(tool, attribute):
    """An attribute, or what was raised instead. One that is missing is None."""
    try:
        return getattr(tool, attribute, None), None
    except Exception as error:
        return None, f"{type(error).__name__}: {shown(error)}"


def has(tool, attribute):
    try:
        return hasattr(tool, attribute)
    except Exception:
        # It is there, and raises; the check of its own says so.
        return True


def passed(name, message):
    return {"name": name, "passed": True, "message": message, "severity": "info"}


def failed(name, message):
    weight = "warning" if name in ("tool_description", "tool_input_schema") else "error"
    return {"name": name, "passed": False, "message": message, "severity": weight}
