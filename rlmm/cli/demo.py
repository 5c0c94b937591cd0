"""
`rlmm demo`: the service's life in one story, on the embedded log, in a folder of its own.

A service starts, a history that a real broker wrote is written through it, it answers, it is killed
with SIGKILL, and another one goes on from the snapshot and gives the same answers. Nothing outside
of the folder is touched.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from rlmm.cli.demo_history import recorded_history, show_history
from rlmm.cli.output import print_table
from rlmm.errors import EngineFailed

if TYPE_CHECKING:
    from types import TracebackType


class DemoService:
    """A service in a process of its own, told what to do line by line."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # our own program, with a folder of ours
            [sys.executable, "-m", "rlmm.cli.demo_service", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def ask(self, command: str, *arguments: int) -> dict[str, Any]:
        """Have it do something, and return what it says of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([command, *arguments]) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone: what it said last, or that it said nothing, comes below
        line = self._process.stdout.readline()
        if not line:
            msg = f"the demonstration's service ended with status {self._process.wait()}"
            raise EngineFailed(msg)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> int:
        """End it as a power loss of the process would; its status."""
        self._process.send_signal(signal.SIGKILL)
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


@click.command()
@click.option("--history", is_flag=True, help="Play the recorded history only, in memory.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where log and snapshots are kept, and stay; without it in a temporary folder.",
)
def demo(*, history: bool, folder: Path | None) -> None:
    """Start, write, read, kill, restart from the snapshot: the same answers. Takes seconds."""
    if history:
        show_history()
        return
    with ExitStack() as closing:
        if folder is None:
            folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="rlmm-demo-")))
        _story(folder)


def _story(folder: Path) -> None:
    recorded = recorded_history()
    with DemoService(folder) as service:
        started = service.ask("start")
        click.echo(
            f"1. A service starts on an embedded log: {started['partitions']} metadata partitions, "
            f"all answered from, nothing in them.\n"
        )
        first = service.ask("write", 0, 50)
        service.ask("snapshot")
        rest = service.ask("write", 50, 1_000)
        written = {
            verdict: first["verdicts"].get(verdict, 0) + rest["verdicts"].get(verdict, 0)
            for verdict in {**first["verdicts"], **rest["verdicts"]}
        }
        told = ", ".join(f"{count} {verdict}" for verdict, count in written.items())
        click.echo(
            f"2. A history that Apache Kafka {recorded.kafka_version} wrote is written through "
            f"it, and each writer hears what became of its event:\n   {told}. "
            f"A snapshot was taken after the first {first['count']}.\n"
        )
        before = service.ask("answers")
        _show("3. It answers", before)
        status = service.kill()
    click.echo(f"4. Killed with SIGKILL (status {status}), and another one starts in the folder:")
    with DemoService(folder) as service:
        again = service.ask("start")
        click.echo(
            f"   {again['restored']} metadata partitions come from their snapshots, "
            f"{again['replayed']} records are read behind them.\n"
        )
        after = service.ask("answers")
        same = sum(before["partitions"][key] == found for key, found in after["partitions"].items())
        click.echo(
            f"5. The same answers: {same} of {len(before['partitions'])} user partitions, "
            f"{_lookups(before)} look-ups.\n"
        )
        refused = service.ask("trouble")
        print_table(
            "6. What is no answer, and what is not taken",
            ("written or asked", "error", "why"),
            [tuple(row) for row in refused["rows"]],
        )
        service.ask("stop")
    if before["partitions"] != after["partitions"]:
        msg = "the restarted service answers differently: this is a fault of ours, please report it"
        raise EngineFailed(msg)


def _lookups(answers: dict[str, Any]) -> int:
    return sum(len(found["lookups"]) for found in answers["partitions"].values())


def _show(title: str, answers: dict[str, Any]) -> None:
    rows = []
    for name, found in answers["partitions"].items():
        shown = {offset: (segment or "none") for offset, segment in found["lookups"]}
        rows.append((name, found["segments"], found["bytes"], found["highest"], shown[100]))
    print_table(
        title,
        ("user partition", "segments", "bytes", "highest offset", "segment with offset 100"),
        rows,
    )
