"""Command `rlmm demo`: it composes the demonstration and writes the report."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from rlmm.errors import EngineUnfit
from rlmm_demo.history import show_history

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm_demo.broker.jars import KafkaJars
    from rlmm_demo.report.story import DemoStory
    from rlmm_demo.screens import DemoFigures
    from rlmm_demo.screens.stage import DemoStage
    from rlmm_demo.world.world import DemoWorld

    Show = Callable[[DemoStage, DemoWorld, DemoFigures], None]

REPORT: Final = Path("demo/report.html")


@click.command()
@click.option("--history", is_flag=True, help="Only replay a recorded history, in memory.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new folder that keeps all data. Default: a temporary folder.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default=REPORT,
    show_default=True,
    help="The file of the report; an earlier one is replaced.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the broker's jars. Default: rlmm in the user's cache folder.",
)
@click.option(
    "--without-broker",
    is_flag=True,
    help="Start no broker, even where Maven and a JDK are installed.",
)
def demo(
    *, history: bool, folder: Path | None, report: Path, cache: Path | None, without_broker: bool
) -> None:
    """
    Tell one story in nine screens: a broker, copies by Spark, a kill, a disaster.

    The other screens produce records, read them without local data, refuse, explain and measure.

    Each screen has a claim, and a tick when the claim was shown; the exit code is 1 when one was
    not. With Maven and a JDK, an unmodified broker takes part, which Maven fetches at the first
    run; without them the demo has no stock consumer. It takes about two minutes.
    """
    if history:
        if folder is not None:
            raise click.UsageError("--history keeps nothing: it plays in memory, without --folder.")
        show_history()
        return
    if folder is not None and folder.exists() and any(folder.iterdir()):
        msg = f"{folder} is not empty"
        raise click.UsageError(msg)
    import rlmm_demo.report.charts  # noqa: F401, PLC0415  # missing libraries stop the demo here

    _check_report(report)
    with ExitStack() as closing:
        closing.enter_context(_ended_in_order())
        jars, because = _jars(cache, is_wanted=not without_broker)
        # Paths of sockets are short, those of folders are not.
        short = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="rlmm-demo-")))
        place = (folder or short / "data").absolute()
        _make_folder(place)
        is_shown = _play(_world(place, short / "rlmm.sock", jars), because, report)
    if not is_shown:
        click.get_current_context().exit(1)


def _jars(cache: Path | None, *, is_wanted: bool) -> tuple[KafkaJars | None, str]:
    if not is_wanted:
        return None, "not wanted"
    from rlmm_demo.broker.jars import is_made, make_jars  # noqa: PLC0415

    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    place = cache or Path(base) / "rlmm" / "demo"
    try:
        if not is_made(place):
            click.echo("Kafka is fetched by Maven and the broker's plugins are built, once ...")
        return make_jars(place.absolute()), ""
    except EngineUnfit as error:
        return None, str(error)
    except OSError as error:
        return None, f"{place}: {error.strerror or error}"


def _check_report(report: Path) -> None:
    """Refuse a report that cannot be written before the demo starts."""
    _make_folder(report.parent)
    try:
        tempfile.TemporaryFile(dir=report.parent).close()
    except OSError as error:
        raise click.FileError(str(report), error.strerror or str(error)) from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.FileError(str(folder), error.strerror or str(error)) from error


def _world(folder: Path, socket: Path, jars: KafkaJars | None) -> DemoWorld:
    if jars is not None:
        from rlmm_demo.broker.broker_world import BrokerWorld  # noqa: PLC0415

        return BrokerWorld(folder, socket, jars)
    from rlmm_demo.world.made_up_world import MadeUpWorld  # noqa: PLC0415

    return MadeUpWorld(folder, socket)


def _play(world: DemoWorld, because: str, report: Path) -> bool:
    """Show all screens up to the first failure; return whether every claim was shown."""
    from rlmm_demo.screens import DemoFigures  # noqa: PLC0415
    from rlmm_demo.screens.stage import DemoStage  # noqa: PLC0415

    stage = DemoStage(with_broker=world.has_broker, without_broker_because=because)
    facts = DemoFigures()
    if world.has_broker:
        click.echo("With an unmodified Kafka broker.")
    else:
        click.echo(f"Without a broker ({because}): the same story without stock consumers.")
    with world:
        for show in _screens():
            show(stage, world, facts)
            if not stage.is_shown:
                break  # what comes next stands on it
    _write_report(stage, report)
    count, of_all = stage.shown_count, len(_screens())
    click.echo(f"\n{count} of {of_all} claims shown in {stage.seconds:.0f} s; {report}")
    return count == of_all


def _screens() -> tuple[Show, ...]:
    from rlmm_demo.screens import disaster, records, scoreboard, service_answers  # noqa: PLC0415

    return (
        service_answers.show_start, records.show_produce, records.show_copies,
        records.show_cold_read, service_answers.show_refusal, service_answers.show_kill,
        service_answers.show_explain, disaster.show_disaster, scoreboard.show_scoreboard,
    )  # fmt: skip


def _write_report(story: DemoStory, report: Path) -> None:
    from rlmm.base.clock import SYSTEM_CLOCK  # noqa: PLC0415
    from rlmm.views.values import iso_time  # noqa: PLC0415
    from rlmm_demo.report.charts import replay_chart, tier_map  # noqa: PLC0415
    from rlmm_demo.report.page import report_page  # noqa: PLC0415

    story.written_at = str(iso_time(SYSTEM_CLOCK.now_ms()))
    pages = {report: report_page(story)}
    if story.is_shown and story.tier_maps:  # two charts as files, for pages that show images alone
        for chart in (tier_map(story.tier_maps), replay_chart(story.replays)):
            pages[report.with_name(f"{chart.name}.svg")] = chart.svg
    for page, text in pages.items():
        unfinished = page.with_suffix(f".{os.getpid()}.unfinished")  # two may run at a time
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(page)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """End all processes in order on a signal; SIGHUP stays ignored under nohup."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {end: signal.getsignal(end) for end in (signal.SIGTERM, signal.SIGHUP)}
    for end, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(end, leave)
    try:
        yield
    finally:
        for end, handler in before.items():
            signal.signal(end, handler)
