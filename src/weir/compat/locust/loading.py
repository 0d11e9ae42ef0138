"""A locustfile, executed: its user classes and its shape. In a worker, behind `api.install`."""

import importlib.util
import inspect
import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from weir.compat.locust.api import FastHttpUser, HttpUser, LoadTestShape, User
from weir.compat.locust.api.exception import NotInWeir
from weir.compat.locust.api.task import chosen_by_tags, equally_weighted
from weir.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Locustfile:
    """What the files hold."""

    users: dict[str, Any]
    """User classes that are not abstract, by name."""
    shape: Any
    """The class of the load's shape; None: there is none."""


def load(paths: Sequence[Path]) -> Locustfile:
    """Executes files and gathers what they hold.

    Raises:
        UsageError: one of them cannot be executed, or they hold no users.
    """
    users: dict[str, Any] = {}
    shapes: list[Any] = []
    for path in paths:
        found = vars(_executed(path)).values()
        classes = [one for one in found if inspect.isclass(one)]
        users |= {one.__name__: one for one in classes if issubclass(one, User) and not vars(one)["abstract"]}
        shapes += [one for one in classes if issubclass(one, LoadTestShape) and one is not LoadTestShape and not vars(one).get("abstract")]
    shapes = list(dict.fromkeys(shapes))
    names = ", ".join(map(str, paths))
    if not users:
        raise UsageError(f"{names}: found no user class, expected one as class Me(HttpUser) that is not abstract")
    if len(shapes) > 1:
        raise UsageError(f"{names}: found {len(shapes)} shapes ({', '.join(one.__name__ for one in shapes)}), expected one")
    return Locustfile(users, shapes[0] if shapes else None)


def chosen(found: Locustfile, options: Namespace) -> list[Any]:
    """The user classes that the command line asks for, with their tasks and their host as it says.

    Raises:
        UsageError: there is no such class, or it is left without tasks or host.
    """
    for name in options.user_classes:
        if name not in found.users:
            raise UsageError(f"found the user class {name}, expected some of: {', '.join(found.users)}", hint="weir locust --list")
    classes = [found.users[name] for name in dict.fromkeys(options.user_classes or found.users)]
    for one in classes:
        where = f"class {one.__name__}"
        chosen_by_tags(one, _tags(options.tags), _tags(options.exclude_tags))
        if options.equal_weights:
            equally_weighted(one)
        if not one.tasks:
            what = "left by --tags and --exclude-tags" if options.tags or options.exclude_tags else "in it"
            raise UsageError(f"{where}: found no task {what}, expected @task on its methods, or tasks = [...]")
        one.host = options.host or one.host
        if issubclass(one, (HttpUser, FastHttpUser)) and not one.host:
            raise UsageError(f"{where}: found no host, expected one", hint="--host http://127.0.0.1:8000")
    return sorted(classes, key=lambda one: str(one.__name__))


def _tags(named: list[str] | None) -> set[str] | None:
    return None if not named else set(named)


def _executed(path: Path) -> ModuleType:
    folder = str(path.parent)
    for one in (folder, str(Path.cwd())):
        if one not in sys.path:
            sys.path.insert(0, one)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As after an import: dataclasses and pickle look their module up.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename or path}, line {error.lineno}"
        raise UsageError(f"{where}: found a syntax error: {error.msg}: {(error.text or '').strip()}") from None
    except (Exception, SystemExit) as error:
        raise _explained(path, error) from None
    return module


def _explained(path: Path, error: BaseException) -> UsageError:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f"{path}, line {lines[-1]}" if lines else str(path)
    match error:
        case NotInWeir():
            return UsageError(f"{where}: {error}", hint="docs/guides/locust.md says what weir locust has")
        case ModuleNotFoundError() if (error.name or "").split(".")[0] == "locust":
            return UsageError(f"{where}: {error.name}: weir has no such module", hint="docs/guides/locust.md says what weir locust has")
        case ModuleNotFoundError():
            return UsageError(f"{where}: {error}", hint=f"install it for the Python that runs weir: {sys.executable} -m pip install ...")
        case _:
            return UsageError(f"{where}: {type(error).__name__}: {error}")
