"""From a folder, or a name, to the Python module whose `mount` is called."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import re
import sys
import threading

GROUP = "amplifier.modules"
# Where packages are, by the names they are imported under.
_places = {}
_lock = threading.Lock()


class LoadError(Exception):
    """A module cannot be had. `reason` is one of Amplifier's own words for it."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


def load(order):
    """The imported module and the function that mounts it. Imported once, however many sessions mount it."""
    if order["package"] == "folder":
        module, attribute = _from_folder(order["id"], order["root"])
    else:
        module, attribute = _installed(order["id"], order.get("name"))
    mount = getattr(module, attribute, None)
    if mount is None:
        raise LoadError("invalid_entry_point", f"`{module.__name__}` has no `{attribute}`")
    if not callable(mount):
        raise LoadError("invalid_entry_point", f"`{module.__name__}.{attribute}` cannot be called")
    if not _is_async(mount):
        raise LoadError("invalid_entry_point", f"`{module.__name__}.{attribute}` is not `async def`")
    return module, mount


def _is_async(mount):
    called = getattr(mount, "__call__", None)
    return any(map(inspect.iscoroutinefunction, (mount, inspect.unwrap(mount), called)))


def _from_folder(module_id, root):
    root = os.path.abspath(root)
    if not os.path.exists(root):
        raise LoadError("missing_source", f"`{root}` does not exist")
    if os.path.isfile(root):
        return _import_at(os.path.splitext(os.path.basename(root))[0], root, None), "mount"
    if os.path.isfile(os.path.join(root, "__init__.py")):
        name = os.path.basename(root)
        return _import_at(name, os.path.join(root, "__init__.py"), root), "mount"
    for folder in (root, os.path.join(root, "src")):
        found = _package_in(folder, module_id)
        if found:
            return _import_package(folder, found), "mount"
    entry = _entry_point_of(root, module_id)
    if entry:
        name, _, attribute = entry.partition(":")
        for folder in (root, os.path.join(root, "src")):
            if os.path.isfile(os.path.join(folder, *name.split("."), "__init__.py")) or os.path.isfile(
                os.path.join(folder, *name.split(".")) + ".py"
            ):
                return _import_package(folder, name), attribute or "mount"
    raise LoadError(
        "invalid_package_layout",
        f"`{root}` has no package: neither `__init__.py`, nor a folder `amplifier_module_*` with one in it",
    )


def _package_in(folder, module_id):
    usual = "amplifier_module_" + re.sub(r"\W", "_", module_id)
    if os.path.isfile(os.path.join(folder, usual, "__init__.py")):
        return usual
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    for name in names:
        if name.startswith("amplifier_module_") and os.path.isfile(os.path.join(folder, name, "__init__.py")):
            return name
    return None


def _entry_point_of(root, module_id):
    """What the package's own description says is to be mounted."""
    try:
        import tomllib

        with open(os.path.join(root, "pyproject.toml"), "rb") as file:
            project = tomllib.load(file).get("project", {})
    except (ImportError, OSError, ValueError):
        return None
    entries = project.get("entry-points", {}).get(GROUP, {})
    if not isinstance(entries, dict):
        return None
    found = entries.get(module_id) or next(iter(entries.values()), None)
    return found if isinstance(found, str) else None


def _import_package(folder, name):
    """By its place, not by its name alone: an installed package must not stand in for the one that was named. The folder
    is searched last, so that nothing in it stands in for something else."""
    if folder not in sys.path:
        sys.path.append(folder)
    if "." in name:
        return _imported(name, os.path.join(folder, *name.split(".")))
    package = os.path.join(folder, name)
    if os.path.isdir(package):
        return _import_at(name, os.path.join(package, "__init__.py"), package)
    return _import_at(name, package + ".py", None)


class Finder:
    """Finds the packages of folders, before all others. Python's own import then sees to it that two modules that import
    the same one, or each other, at the same time wait for each other, and for nobody else."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        file, package = _places.get(name, (None, None))
        if file is None:
            return None
        search = [package] if package else None
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=search)


def _import_at(name, file, package):
    name = re.sub(r"\W", "_", name)
    with _lock:
        known = _places.get(name, (None, None))[0]
        if known is not None and known != file:
            raise LoadError("validation_failed", f"a package `{name}` is already loaded from `{known}`")
        present = sys.modules.get(name)
        if present is not None and getattr(present, "__file__", None) != file:
            raise LoadError("validation_failed", f"`{name}` is the name of a package that is already in use")
        if not os.path.isfile(file):
            raise LoadError("invalid_package_layout", f"`{file}` does not exist")
        if Finder not in sys.meta_path:
            sys.meta_path.insert(0, Finder)
        _places[name] = (file, package)
    return importlib.import_module(name)


def _imported(name, place):
    module = importlib.import_module(name)
    at = getattr(module, "__file__", None) or ""
    if not at.startswith(place):
        raise LoadError("validation_failed", f"`{name}` was found at `{at}` and not at `{place}`")
    return module


def _installed(module_id, name):
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name in (module_id, name):
            return importlib.import_module(entry.module), entry.attr or "mount"
    wanted = [module_id] if name is None else [module_id, name]
    for each in wanted:
        bare = re.sub(r"^amplifier[-_]module[-_]", "", each)
        package = "amplifier_module_" + re.sub(r"\W", "_", bare)
        if importlib.util.find_spec(package) is not None:
            return importlib.import_module(package), "mount"
    raise LoadError(
        "missing_source",
        f"no installed package has an entry point `{module_id}` in `{GROUP}`, nor is there a package "
        f"`amplifier_module_{re.sub(chr(92) + 'W', '_', module_id)}`",
    )
