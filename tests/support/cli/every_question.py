"""Every question that a command can ask of that history."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from rlmm.cli.main import cli
from tests.support.builders import segment_id
from tests.support.cli.shared_history import PLACES, START_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.cli.shared_history import SharedHistory


class Question(NamedTuple):
    command: str
    arguments: tuple[str, ...] = ()
    is_empty: bool = False

    @property
    def words(self) -> list[str]:
        return [*self.command.split(), *self.arguments]

    def __str__(self) -> str:
        return " ".join(self.words)


OF_CLUSTER = (
    Question("doctor"),
    Question("lag"),
    Question("lag", ("--disks",)),
    Question("preflight reassign", ("orders",)),
)
"""Questions that need a cluster beside the source."""
WITHOUT_QUESTION = {
    "tier plan": "asks a service whether it may write, in its own words",
    "tier run": "the same",
    "tier adopt abort": "the same",
    "tier adopt resume": "the same",
    "tier audit": "asks objects as well: a report, and tests of its own on each source",
    "tier backup export": "the same, of all records",
    "tier backup import": "writes",
    "tier expire": "as tier audit",
    "tier export": "answers with a plan: byte for byte equal on all sources, by a test of its own",
    "tier rebuild": "as tier audit",
    "tier verify": "as tier audit",
    "support-bundle": "answers with an archive: it has a test of its own",
}
"""Commands with a `--sidecar` and a `--log-dirs` that are not in `questions`, and why."""


def moments_of(history: SharedHistory) -> tuple[tuple[str, ...], ...]:
    middle = ",".join(f"{place}:{len(history.values_of(place)) // 2}" for place in range(PLACES))
    return (), ("--at", str(history.half_way_ms)), ("--at", middle)


def questions(history: SharedHistory) -> list[Question]:
    found = [
        Question("status"),
        Question("check"),
        Question("check", ("--max-undecodable", "9", "--max-rejected", "0")),
        Question("offsets", ("--topic", "pay.*")),
        Question("preflight delete", ("orders",)),
        Question("preflight delete", ("nothing",)),
        Question("rehearse-compaction", ("--segments", "--retention", "1d")),
    ]
    start, half_way, middle = str(START_MS), str(history.half_way_ms), moments_of(history)[2][1]
    found += [
        Question("diff", ("--from", half_way)),
        Question("diff", ("--from", start, "--to", middle)),
        Question("diff", ("--from", middle, "--summary", "--topic", "orders")),
    ]
    for at in moments_of(history):
        found += _of_segments(history, at)
        found += _of_state(at)
        found += _of_the_past(history, at)
    return found


def _of_segments(history: SharedHistory, at: tuple[str, ...]) -> list[Question]:
    orders = f"{history.ids.orders}:orders-0"
    segment = str(segment_id("o0-b", history.ids.of_orders(0)).uuid)
    return [
        Question("segments list", at),
        Question("segments list", ("--state", "COPY_SEGMENT_STARTED", "--sort=-size", *at)),
        Question("segments list", ("--topic", "orders", "--broker", "1", "--limit", "2", *at)),
        Question("segments list", ("--with-custom-metadata", *at)),
        Question("segments describe", (segment, *at)),
        Question("segments find", (orders, "--offset", "120", *at)),
        Question("segments find", (orders, "--time", str(START_MS - 58_000), *at)),
    ]


def _of_state(at: tuple[str, ...]) -> list[Question]:
    soon = ("--copy-older-than", "1s", "--delete-older-than", "1s")
    return [
        Question("stuck", (*soon, *at)),
        Question("stuck", (*soon, "--no-history", "--topic", "orders", *at)),
        Question("verify", at),
        Question("verify", ("--topic", "orders", "--strict", *at)),
        Question("offsets", at),
        Question("preflight delete", ("payments", *at)),
        Question("rehearse-compaction", at),
        Question("usage", at),
        Question("usage", ("--by", "epoch", *at)),
        Question("usage", ("--by", "state", "--price-gib-month", "0.02", *at)),
    ]


def _of_the_past(history: SharedHistory, at: tuple[str, ...]) -> list[Question]:
    ids = history.ids
    return [
        Question("history", (str(segment_id("o2-new", ids.of_orders(2)).uuid), *at)),
        Question("history", (f"{ids.orders}:orders-0", *at)),
        Question("history", ("orders-1", "--last", "2", *at)),
        Question("explain", (f"{ids.orders}:orders-0@120", *at), is_empty=True),
        Question("explain", ("orders-1@120", "--no-history", *at)),
        Question("explain", ("orders-2@10", "--epoch", "0", *at), is_empty=True),
        Question("events", at),
        Question("events", ("--verdict", "rejected", "--verdict", "undecodable", *at)),
        Question("events", ("--topic", "orders", "--broker", "2", "--no-verdicts", *at)),
    ]


def one_of_each(history: SharedHistory) -> list[Question]:
    bundle = Question("support-bundle", ("--file", "/dev/null/no-such-folder/bundle.tar.gz"))
    every = (*questions(history), *OF_CLUSTER, bundle)
    return list({one.command: one for one in reversed(every)}.values())


def reading_commands(command: click.Command = cli, name: str = "") -> Iterator[tuple[str, bool]]:
    """Yield every command that copied folders can answer, and whether it has the flag `--at`."""
    if isinstance(command, click.Group):
        for member in command.list_commands(_CONTEXT):
            found = command.get_command(_CONTEXT, member)
            assert found is not None, member
            yield from reading_commands(found, f"{name} {member}".strip())
        return
    names = {parameter.name for parameter in command.params}
    if {"sidecar", "log_dirs"} <= names:
        yield name, "at" in names


_CONTEXT = click.Context(cli)
