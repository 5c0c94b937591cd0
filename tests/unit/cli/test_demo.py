"""The demonstration, and what the README shows of it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rlmm.cli import demo, demo_tiering
from rlmm.cli.demo_behind import COPIES
from rlmm.cli.demo_operators import show_commands
from rlmm.cli.demo_service import DemoService
from rlmm.cli.main import cli
from rlmm.errors import EngineFailed, EngineUnfit
from spark_tiering.engines.opening import open_engine

if TYPE_CHECKING:
    from spark_tiering.engines.settings import EngineSettings

pytestmark = pytest.mark.timeout(300)  # a busy machine takes its time to start Spark

README = (Path(__file__).resolve().parents[3] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demonstration keeps its log."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> str:
    """What the demonstration prints, when all went well; a process has one session of Spark's."""
    command = [sys.executable, "-m", "rlmm", "demo", "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_demo_when_run_then_shows_what_the_readme_shows(shown: str) -> None:
    """Every line of output that the README quotes is printed, to the letter."""
    blocks = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    quoted = next(block for block in blocks if "5. Killed" in block)
    missing = [line for line in quoted.splitlines() if line not in (*shown.splitlines(), "...")]
    assert not missing


def test_demo_when_its_second_service_is_behind_then_refuses_by_socket_and_http(shown: str) -> None:
    """By both it is not ready while records are left to read, and answers behind them."""
    _, _, told = shown.partition("6. It refuses while it is behind\n")
    assert [re.split(r" {2,}", line) for line in told.splitlines()[:3]] == [
        ["asked", "while it is behind", "when it has caught up"],
        ["the size of payments-0", "not-ready: replaying", "246320"],
        ["/readyz", "503 not-ready", "200 ready"],
    ]
    left = re.search(r"(\d+) records were left to read when it was asked", told)
    assert left is not None
    assert 0 < int(left[1]) <= 2 * COPIES + 32


def test_demo_when_all_is_done_then_shows_what_the_commands_of_operators_say(shown: str) -> None:
    """Each with its command line, short, and of the data that the demonstration wrote."""
    _, _, told = shown.partition("12. What an operator is shown, by the same socket\n")
    told, _, _ = told.partition("13. Is the tier whole")
    asked = dict(re.findall(r"^\$ rlmm (.*)\n((?:(?!\$ ).*\n)+)", told, re.MULTILINE))
    assert [one.split()[0] for one in asked] == ["status", "segments", "explain", "history", "diff"]
    status, segments, explained, history, diff = asked.values()
    assert "50 of 50 metadata partitions are answered from; nothing is left to apply" in status
    assert re.search(r"^payments-0 +\S{22} +COPY_FINISHED +433 +441 ", segments, re.MULTILINE)
    assert explained.startswith("payments-0@100 is found, and can be read from the tier\n")
    assert "wD8tuiTdSVuGpTYzqMvQKw, offsets 84 to 111" in explained
    assert "2 events: 2 applied" in history
    changed = re.findall(r"^(orders|clicks)-\d +(\d)", diff, re.MULTILINE)
    assert sorted(changed)[:2] == [("clicks", "3"), ("clicks", "3")]
    assert len(told.splitlines()) < 80


def test_demo_when_the_tier_is_looked_after_then_shows_each_step_and_ends_as_it_began(
    shown: str,
) -> None:
    """Verified, audited, read without the broker, its metadata lost and made anew."""
    _, _, told = shown.partition("13. Is the tier whole")
    asked = dict(re.findall(r"^\$ rlmm (.*)\n((?:(?!\$ ).*\n)+)", told, re.MULTILINE))
    verified, audited, saved, applied = asked.values()
    assert "6 of 6 segments in 2 partitions, 18 objects" in verified
    assert "nothing found" in verified
    assert audited.startswith("Clean: 18 objects")
    assert "   6,144 records, each equal to what was written." in told
    assert "   Offset 0 of clicks-0: unknown-partition." in told
    assert saved.count("TIER-METADATA-LOST clicks-") == 6
    assert "6 segments of " in applied
    assert "   The same answers as before: 64 look-ups." in told


def test_demo_when_a_command_fails_then_says_which_and_why(tmp_path: Path) -> None:
    """A demonstration that cannot show what it promises is no success."""
    with pytest.raises(EngineFailed, match=r"rlmm status .*sidecar-unavailable"):
        show_commands(tmp_path / "nobody.sock", 0, 9)


@pytest.mark.usefixtures("shown")
def test_demo_when_given_a_folder_then_leaves_log_and_snapshots_there(folder: Path) -> None:
    """The folder can be looked at afterwards, and is a log like any other."""
    assert (folder / "log" / "__remote_log_metadata-0").is_dir()
    assert list((folder / "snapshots").rglob("*"))


def test_demo_when_spark_is_there_then_copies_by_it_and_shows_plan_progress_and_receipts(
    shown: str,
) -> None:
    """All six segments are copied by tasks of Spark, and each has its receipt."""
    _, _, told = shown.partition("9. A broker's log folder is tiered")
    assert "By Spark, local[2]: 2 tasks at a time." in told
    assert re.search(r"plan [0-9a-f]{16}: archive", told)
    assert "  6 of 6 segments, 6.2 of 6.2 MB" in told
    assert re.search(r"job \S+: 6 of 6 segments finished", told)
    receipts = re.findall(r"clicks-([01]) (\d+)-\d+ +finished  .* [0-9a-f]{16} ", told)
    assert sorted(receipts) == [(one, base) for one in "01" for base in ("0", "1024", "2048")]


def test_demo_when_spark_cannot_run_then_says_so_and_copies_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says why, and this process does what Spark would have done."""

    def without_spark(settings: EngineSettings) -> Any:
        if settings.master is not None:
            raise EngineUnfit("no Java 17 or newer")
        return open_engine(settings)

    monkeypatch.setattr(demo_tiering, "open_engine", without_spark)
    folder = tmp_path / "data"
    with DemoService(folder, tmp_path / "rlmm.sock") as service:
        service.wait_ready()
        demo_tiering.show_tiering(service, folder)
    told = capsys.readouterr().out
    assert "Spark cannot run here, so it is copied by this process: no Java 17 or newer\n" in told
    assert "6 of 6 segments finished" in told
    assert "11. A second run: nothing to do" in told


def test_demo_when_what_tiering_needs_is_not_installed_then_says_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service alone needs none of it: the demonstration ends well without."""
    monkeypatch.setitem(sys.modules, "rlmm.cli.demo_tiering", None)
    assert demo._tiering(None, tmp_path) == 10  # type: ignore[arg-type]  # nobody is asked
    assert capsys.readouterr().out.startswith("9. Segments are not tiered here, ")


def test_history_when_played_then_breaks_no_rule_and_keeps_every_state() -> None:
    """Whatever it appends, the state stays sound, and images give the same state back."""
    result = CliRunner().invoke(cli, ["demo", "--history"])
    assert "Internal rules broken by all this: 0" in result.stdout
    assert result.stdout.rstrip().count("yes") == 3
    assert "NO" not in result.stdout


def test_python_of_the_readme_when_run_then_works(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The snippet can be pasted as it stands."""
    snippet = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    scope: dict[str, Any] = {}
    exec(compile(snippet, "README.md", "exec"), scope)
    asyncio.run(scope["main"](str(tmp_path)))
    printed = capsys.readouterr().out
    assert printed.startswith("Applied(remark=None) 0\n[SegmentMetadata(")
