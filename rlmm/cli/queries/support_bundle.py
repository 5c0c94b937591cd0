"""`rlmm support-bundle`: the documents that support needs, without names."""

from __future__ import annotations

import io
import json
import os
import platform
import secrets
import tarfile
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from rlmm.base.native_core import engine_in_use
from rlmm.base.version import __version__
from rlmm.cli.common.answer_header import Notes
from rlmm.cli.common.commands import COMMANDS_OF_VARIABLES
from rlmm.cli.common.option_kinds import switch
from rlmm.cli.common.query_run import answer
from rlmm.cli.common.shared_flags import is_of_commands
from rlmm.cli.common.source_choice import query
from rlmm.cli.printing.answer import Column, CommandAnswer, ValueFormat
from rlmm.cli.queries.doctor import doctor_findings
from rlmm.cli.queries.stuck import stuck_findings
from rlmm.cli.queries.verify import verify_findings
from rlmm.errors import ConfigError, LogError, RlmmError
from rlmm.inspection.check_thresholds import Thresholds, judge
from rlmm.metadata.verdicts import Rejected, Undecodable
from rlmm.telemetry.redaction import NameRedaction
from rlmm.views.segment import partition_fields
from rlmm.views.values import ViewObject

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rlmm.cli.common.query_run import QueryContext
    from rlmm.cli.common.source_choice import SourceChoice
    from rlmm.findings.finding import Finding
    from rlmm.inspection.event_record import EventRecord
    from rlmm.views.values import View

_HOUR_MS = 3_600_000
_COLUMNS = (Column("name", "FILE"), Column("size_bytes", "SIZE", ValueFormat.SIZE))


class BundleHead(ViewObject):
    file: str
    is_redacted: bool
    not_asked: dict[str, str]
    notes: Notes = UNSET


class BundledFile(ViewObject):
    name: str
    size_bytes: int


async def bundle_answer(
    looking: QueryContext, *, path: Path, keeps_names: bool, events_max: int, reads_history: bool
) -> CommandAnswer:
    _require_free(path)
    gathered = _Gathered()
    gathered.documents["configuration.json"] = _configuration()
    topics = await gathered.take("partitions.json", _partitions(looking))
    await gathered.take("status.json", _status(looking))
    await gathered.take("findings.json", _findings(looking, gathered))
    if reads_history and events_max:
        await gathered.take("events.json", _events(looking, events_max))
    names = {str(one["topic"]) for one in topics} if isinstance(topics, list) else set()
    redaction = NameRedaction(secrets.token_bytes(16), names, is_on=not keeps_names)
    gathered.documents["about.json"] = {
        "rlmm": __version__,
        "engine": str(engine_in_use()),
        "python": platform.python_version(),
        "system": platform.platform(),
        "asked_ms": looking.now_ms,
        "source": str(looking.source.kind),
        "where": looking.source.where,
        "is_redacted": not keeps_names,
        "not_asked": gathered.missing,
    }
    sizes = _pack(path, {
        name: json.dumps(redaction.of(document), indent=2, sort_keys=True)
        for name, document in sorted(gathered.documents.items())
    }, looking.now_ms // 1_000)  # fmt: skip
    return CommandAnswer(
        "support-bundle",
        _COLUMNS,
        [BundledFile(name, size) for name, size in sizes.items()],
        BundleHead(str(path), not keeps_names, gathered.missing),
    )


def _require_free(path: Path) -> None:
    if path.exists():
        msg = f"{path} is there already: name another file with --file"
        raise ConfigError(msg)


def _configuration() -> object:
    """Return the configuration that a service would have here, as `rlmm config show` prints it."""
    from rlmm.cli.common.config_options import plain  # noqa: PLC0415  # not for --help
    from rlmm.config.loading import load  # noqa: PLC0415  # not for --help

    environ = {
        name: text
        for name, text in os.environ.items()
        if not is_of_commands(name, COMMANDS_OF_VARIABLES)
    }
    try:
        configuration = load({}, environ)
    except RlmmError as error:
        return {"not_loaded": str(error)}
    return [
        {"key": found.path, "value": plain(found.value), "source": found.source}
        for found in configuration.settings
    ]


class _Gathered:
    """Holds documents by name, and the questions that could not be asked."""

    def __init__(self) -> None:
        self.documents: dict[str, object] = {}
        self.missing: dict[str, str] = {}

    async def take(self, name: str, asked: Awaitable[object]) -> object:
        """Add one document; an error is noted under its name instead."""
        try:
            self.documents[name] = await asked
        except RlmmError as error:
            self.missing[name] = f"{error.code}: {error}"
        return self.documents.get(name)


async def _partitions(looking: QueryContext) -> list[View]:
    moment = await looking.moment()
    return [
        {
            **partition_fields(one.partition),
            "metadata_partition": one.metadata_partition,
            "started": one.started,
            "finished": one.finished,
            "being_deleted": one.being_deleted,
            "size_bytes": one.size_bytes,
            "delete_state": None if one.delete is None else one.delete.state.name,
        }
        for one in await moment.user_partitions()
    ]


async def _status(looking: QueryContext) -> View:
    standing = await looking.source.standing()
    identity = standing.identity
    return {
        "kind": str(standing.kind),
        "where": standing.where,
        "cluster_id": None if identity is None else identity.cluster_id,
        "topic_id": None if identity is None else str(identity.topic_id),
        "partition_count": None if identity is None else identity.partition_count,
        "notes": list(standing.notes),
        "metadata_partitions": [
            {**asdict(one), "rejected": dict(one.rejected), "undecodable": dict(one.undecodable)}
            for one in standing.places
        ],
    }


async def _findings(looking: QueryContext, gathered: _Gathered) -> list[View]:
    found: list[Finding] = list(judge(await looking.source.standing(), Thresholds()))
    cluster = looking.source.cluster

    async def stuck() -> list[Finding]:
        findings, _ = await stuck_findings(
            looking, topic=None, copy_open_ms=_HOUR_MS, delete_open_ms=_HOUR_MS,
            reads_history=False, moment=await looking.moment(),
        )  # fmt: skip
        return findings

    async def verify() -> list[Finding]:
        findings, _ = await verify_findings(looking, topic=None)
        return findings

    asked: dict[str, Callable[[], Awaitable[list[Finding]]]] = {"stuck": stuck, "verify": verify}
    if cluster is not None:
        asked["doctor"] = lambda: doctor_findings(looking, cluster)
    for name, ask in asked.items():
        try:
            found += await ask()
        except RlmmError as error:
            gathered.missing[f"findings of {name}"] = f"{error.code}: {error}"
    return [one.view() for one in found]


async def _events(looking: QueryContext, count_max: int) -> list[View]:
    from rlmm.inspection.replay import PartitionReplay  # noqa: PLC0415  # not for --help

    log = looking.source.log
    identity = await log.identity(timeout_s=looking.timeout_s)
    kept: deque[EventRecord] = deque(maxlen=count_max)
    failed = []
    for place in range(identity.partition_count):
        replay = PartitionReplay(log, place, looking.bound, timeout_s=looking.timeout_s)
        try:
            async for chunk in replay.chunks():
                if chunk.entries:
                    kept.extend(
                        one for one in chunk.happened()
                        if isinstance(one.verdict, Rejected | Undecodable)
                    )  # fmt: skip
        except LogError as error:
            failed.append({"metadata_partition": place, "not_read": str(error)})
    return [*failed, *(_event_view(one) for one in kept)]


def _event_view(happened: EventRecord) -> View:
    partition, segment = happened.partition, happened.segment
    return {
        "metadata_partition": happened.metadata_partition,
        "offset": happened.offset,
        "timestamp_ms": happened.timestamp_ms,
        "verdict": str(happened.verdict),
        "event": type(happened.event).__name__ if happened.event is not None else None,
        **({} if partition is None else partition_fields(partition)),
        "segment_id": None if segment is None else str(segment),
        "value_bytes": None if happened.value is None else len(happened.value),
    }


def _pack(path: Path, texts: dict[str, str], mtime_s: int) -> dict[str, int]:
    """Write one archive that only its owner can read; return sizes by name."""
    sizes = {}
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as packed:
            for name, text in texts.items():
                data = text.encode()
                entry = tarfile.TarInfo(f"rlmm-support/{name}")
                entry.size, entry.mtime, entry.mode = len(data), mtime_s, 0o600
                packed.addfile(entry, io.BytesIO(data))
                sizes[name] = len(data)
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise ConfigError(msg) from error
    return sizes


@click.command("support-bundle")
@query
@click.option(
    "--file", "path", type=click.Path(dir_okay=False, path_type=Path),
    default=Path("rlmm-support.tar.gz"), show_default=True,
    help="Where it goes; an existing file is not replaced.",
)  # fmt: skip
@switch("--keep-names", "Leave names of topics, hosts and paths in it.", "keeps_names")
@click.option(
    "--events", "events_max", type=click.IntRange(min=0), default=1_000, show_default=True,
    help="Most events that were not simply applied, the latest.",
)  # fmt: skip
@switch("--no-history", "Do not read the log for these.")
def support_bundle(asked: SourceChoice, *, no_history: bool, **flags: Any) -> None:
    """
    Pack the documents that support needs.

    A tar archive with how the source stands, this command's configuration with secrets masked, all
    findings of verify, stuck, check and, where the cluster is named, doctor, sums by topic, and
    recent events that were refused or not understood. Names of topics, hosts and folders are
    replaced by stand-ins, opaque bytes are left out. What could not be asked is named in the
    archive. Look at it before you pass it on.

    \b
    Examples:
      rlmm support-bundle
      rlmm support-bundle --bootstrap-server kafka:9092 --file /tmp/case-17.tar.gz
      rlmm support-bundle --log-dirs /copies/broker-1 --keep-names
    """
    answer(asked, bundle_answer, reads_history=not no_history, **flags)
