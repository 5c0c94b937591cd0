"""
`rlmm demo`: the service's life in one story, on the embedded log, in a folder of its own.

A service starts, a client writes a history that a real broker wrote through its socket, it answers,
it is killed with SIGKILL, and another one goes on from the snapshot, refuses while it is behind,
and gives the same answers when it has caught up. Then segments of a broker's log folder are copied
to a tier, and the service hears of it; the commands of operators show what came of it all. At the
end the tier is audited, read by Spark, and its lost metadata is made anew. Nothing outside of the
folder is touched.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from rlmm.cli import demo_talk
from rlmm.cli.demo_behind import append_copies, ask_while_behind
from rlmm.cli.demo_history import recorded_history, show_history
from rlmm.cli.demo_operators import show_commands
from rlmm.cli.demo_service import DemoService
from rlmm.cli.output import print_table
from rlmm.clock import SYSTEM_CLOCK
from rlmm.errors import EngineFailed
from rlmm.planning import LOG_FOLDER

_FIRST = 50
"""Events that are in the snapshots; the others are only in the log."""
_BEHIND_COPIES = 12
"""The number of what is shown behind them."""
_METRICS = ("rlmm_ready", 'rlmm_segments{cluster="files",state="COPY_SEGMENT_FINISHED"}')


@click.command()
@click.option("--history", is_flag=True, help="Play the recorded history only, in memory.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where log and snapshots are kept, and stay; without it in a temporary folder.",
)
@click.option("--without-tiering", is_flag=True, help="Leave out the copies, and so Spark.")
def demo(*, history: bool, folder: Path | None, without_tiering: bool) -> None:
    """
    Start, write, read, kill, restart from the snapshot: the same answers. Then tier segments by
    Spark, read one back, and ask as an operator does. Takes less than a minute.
    """
    if history:
        show_history()
        return
    with ExitStack() as closing:
        # Paths of sockets are short, those of folders are not.
        short = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="rlmm-demo-")))
        _story(folder or short / "data", short / "rlmm.sock", is_tiering=not without_tiering)


def _story(folder: Path, socket: Path, *, is_tiering: bool) -> None:
    with DemoService(folder, socket) as service:
        before, since_ms = _first_life(service, folder)
        partition_count = _engine(service)["partition_count"]
        status = service.kill()
    count = append_copies(folder / LOG_FOLDER, demo_talk.payments(), partition_count)
    click.echo(
        f"5. Killed with SIGKILL (status {status}). Before another service starts in the folder, "
        f"{count} events of\n   another topic reach the metadata partition of payments-0."
    )
    with DemoService(folder, socket) as service:
        after = _second_life(service, before)
        if before != after:
            msg = "the restarted service answers differently: a fault of ours, please report it"
            raise EngineFailed(msg)
        number = _tiering(service, folder) if is_tiering else 9
        show_commands(socket, since_ms, number)
        if number == _BEHIND_COPIES:
            _care(service, folder, number + 1)
        else:
            service.stop()


def _first_life(service: DemoService, folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """What it answers, and when the snapshot was there."""
    service.wait_ready()
    status = _engine(service)
    click.echo(
        f"1. A service starts on an embedded log: {status['partition_count']} metadata partitions, "
        "all answered from, nothing in them.\n"
    )
    events = demo_talk.recorded_events()
    verdicts = demo_talk.write(service.client, events[:_FIRST])
    service.snapshot(folder)
    since_ms = SYSTEM_CLOCK.now_ms()
    verdicts += demo_talk.write(service.client, events[_FIRST:])
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    click.echo(
        f"2. A client writes a history that Apache Kafka {recorded_history().kafka_version} wrote "
        f"through the service's socket, and hears what became of each event:\n   {told}. "
        f"A snapshot was taken after the first {_FIRST}.\n"
    )
    answers = demo_talk.answers(service.client)
    print_table(
        "3. It answers, by the socket",
        ("user partition", "segments", "bytes", "highest offset", "segment with offset 100"),
        [
            (name, found["segments"], found["bytes"], found["highest"], found["lookups"][100])
            for name, found in answers.items()
        ],
    )
    code, ready = service.get("/readyz")
    print_table(
        "4. It tells how it stands, by HTTP",
        ("asked", "told"),
        [("/readyz", f"{code} {ready['status']}"), *service.metrics(*_METRICS)],
    )
    return answers, since_ms


def _second_life(
    service: DemoService, before: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    behind = ask_while_behind(service, demo_talk.payments())
    ready = service.wait_ready()
    status = _engine(service)
    restored = status["snapshots"]["restored"]
    replayed = status["totals"]["offsets"]
    click.echo(
        f"   {restored} metadata partitions come from their snapshots, "
        f"{sum(count for name, count in replayed.items() if name in _PASSED)} records are read "
        "behind them.\n"
    )
    too_late = "(it had caught up before it was asked)"
    size = service.client.remote_log_size(demo_talk.payments())
    print_table(
        "6. It refuses while it is behind",
        ("asked", "while it is behind", "when it has caught up"),
        [
            ("the size of payments-0", behind.by_socket if behind else too_late, size),
            ("/readyz", behind.by_http if behind else too_late, f"200 {ready['status']}"),
        ],
    )
    if behind:
        click.echo(f"   {behind.records_left} records were left to read when it was asked.\n")
    after = demo_talk.answers(service.client)
    same = sum(before[name] == found for name, found in after.items())
    looked_up = sum(len(found["lookups"]) for found in after.values())
    click.echo(
        f"7. The same answers: {same} of {len(before)} user partitions, {looked_up} look-ups.\n"
    )
    print_table(
        "8. What is no answer, and what is not taken",
        ("written or asked", "error", "why"),
        demo_talk.trouble(service.client, status["partition_count"]),
    )
    return after


def _tiering(service: DemoService, folder: Path) -> int:
    """Tier segments, where that can be; the number of what is shown next."""
    try:
        # Needs more than the service does.
        from rlmm.cli.demo_tiering import show_tiering  # noqa: PLC0415
    except ImportError as error:
        click.echo(
            f"9. Segments are not tiered here, {error.name} is not installed: "
            "pip install 'rlmm[tiering,spark,java]'\n"
        )
        return 10
    show_tiering(service, folder)
    click.echo()
    return _BEHIND_COPIES


def _care(service: DemoService, folder: Path, number: int) -> None:
    # As the copies, which are there, so it is installed.
    from rlmm.cli.demo_care import show_care  # noqa: PLC0415

    show_care(service, folder, number)


_PASSED = {"applied", "duplicate", "rejected", "undecodable"}


def _engine(service: DemoService) -> dict[str, Any]:
    """What the service says of its one engine."""
    _, status = service.get("/v1/status")
    found: dict[str, Any] = status["clusters"][0]
    return found
