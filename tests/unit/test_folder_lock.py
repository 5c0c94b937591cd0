"""One process for one folder."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rlmm.base.folder_lock import LOCK, folder_lock, owner_pid
from rlmm.errors import ConfigError, FolderInUse, LogUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from rlmm.base.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def assert_refused(
    folder: Path, error: type[Exception], match: str, *, is_observer: bool = False
) -> None:
    with pytest.raises(error, match=match), folder_lock(folder, is_observer=is_observer):
        pass


def fail_with(number: int, *_: object) -> int:
    raise OSError(number, os.strerror(number))


def test_lock_when_held_by_another_process_then_is_refused_with_its_pid(tmp_path: Path) -> None:
    """The refusal names the folder, the owner and the remedy."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert owner_pid(tmp_path) == other.pid
        for is_observer in (False, True):
            message = f"in use by process {other.pid}; choose another"
            assert_refused(tmp_path, FolderInUse, message, is_observer=is_observer)
        other.kill()
    assert owner_pid(tmp_path) is None
    with folder_lock(tmp_path):
        assert owner_pid(tmp_path) == os.getpid()


def test_lock_when_the_folder_is_made_then_closed_to_other_users(tmp_path: Path) -> None:
    """A new folder is closed to other users of the machine, and an existing one keeps its mode."""
    before = os.umask(0o022)
    try:
        with folder_lock(tmp_path / "above" / "data"):
            assert (tmp_path / "above" / "data").stat().st_mode & 0o777 == 0o750
    finally:
        os.umask(before)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o755)
    with folder_lock(tmp_path / "open"):
        assert (tmp_path / "open").stat().st_mode & 0o777 == 0o755


def test_lock_when_given_back_then_nobody_holds_it(tmp_path: Path) -> None:
    """The lock file stays and names no owner."""
    folder = tmp_path / "made" / "anew"
    with folder_lock(folder):
        assert (folder / LOCK).read_text() == f"{os.getpid()}\n"
    assert owner_pid(folder) is None
    assert (folder / LOCK).read_text() == ""


def test_lock_when_the_folder_is_a_file_then_says_so(tmp_path: Path) -> None:
    """The error names the file, and nothing else is touched."""
    path = tmp_path / "file"
    path.write_text("")
    assert_refused(path, ConfigError, "cannot be used as data_dir")


@pytest.mark.parametrize("text", ["", "no number\n", "\xff"], ids=["empty", "words", "not ascii"])
def test_owner_when_the_file_names_none_then_there_is_none(tmp_path: Path, text: str) -> None:
    """A lock file without a process id is ignored."""
    (tmp_path / LOCK).write_text(text, encoding="latin-1")
    assert owner_pid(tmp_path) is None


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES], ids=["read-only", "denied"])
def test_lock_when_an_observer_may_not_write_then_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """An observer needs no lock in a read-only folder, a writer is refused, and nothing changes."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(number))
        with folder_lock(tmp_path, is_observer=True):
            pass
        assert_refused(tmp_path, ConfigError, "cannot be used as data_dir")
    assert not list(tmp_path.iterdir())


def test_lock_when_in_use_then_no_observer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer is refused while a writer holds the folder, and observers share it."""
    with folder_lock(tmp_path), monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(errno.EROFS))
        assert_refused(tmp_path, ConfigError, f"in use by process {os.getpid()}", is_observer=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only(errno.EROFS))
        with folder_lock(tmp_path, is_observer=True), folder_lock(tmp_path, is_observer=True):
            pass
    assert (tmp_path / LOCK).read_text() == ""


def read_only(number: int) -> Callable[..., int]:
    opens = os.open

    def opened(path: Path, flags: int, *arguments: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            return fail_with(number)
        return opens(path, flags, *arguments)

    return opened


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_lock_when_the_disk_is_full_then_says_so_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The error names the full disk, is no configuration error, and leaves no lock."""
    with monkeypatch.context() as patched:
        patched.setattr(os, call, partial(fail_with, errno.ENOSPC))
        assert_refused(tmp_path, LogUnavailable, "as data_dir: No space left on device; make room")
    with folder_lock(tmp_path):
        assert owner_pid(tmp_path) == os.getpid()


def test_lock_when_disk_full_then_no_pid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer on a full disk holds the lock without writing its process id."""
    monkeypatch.setattr(os, "pwrite", partial(fail_with, errno.ENOSPC))
    with folder_lock(tmp_path, is_observer=True):
        assert_refused(tmp_path, ConfigError, "in use by another process")
