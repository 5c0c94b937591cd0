"""
An audit: it lists the store, then reads the metadata, then joins both by shard. A writer announces
a segment before it writes objects: metadata that is read after the listing knows every listed
object, unless it is deleted by then; the audit looks those up in the store again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from rlmm.findings import tier_findings as kinds
from rlmm.findings.finding import Finding
from spark_tiering.maintenance.audit.metadata_shards import AuditMetadata
from spark_tiering.maintenance.audit.object_set_verdict import DAY_MS, AuditRules, SetVerdict
from spark_tiering.maintenance.audit.recheck import AuditRecheck, format_missing, settle_missing
from spark_tiering.maintenance.audit.report import OF_KEYS, AuditReport, OpenUploads
from spark_tiering.maintenance.audit.shard_join import JoinResult, JoinTask, join
from spark_tiering.maintenance.audit.store_shards import (
    UNIT_OBJECTS,
    RowSpill,
    StoreShards,
    open_inventory,
    open_uploads,
    run_waves,
)
from spark_tiering.maintenance.audit.topic_sums import TopicSummaries, ended_topic, small_segments
from spark_tiering.maintenance.audit.unknown_sets import format_head, format_loose, read_list
from spark_tiering.maintenance.tier import unmet_notes
from spark_tiering.reporting.progress import Meter
from spark_tiering.store_listing.key_names import Prefixes, check_prefixes
from spark_tiering.store_listing.rows import RowBlob
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from rlmm.inspection.moment import PartitionSummary
    from rlmm.log.protocol import LogIdentity
    from spark_tiering.maintenance.audit.unknown_sets import UnknownObjectSet
    from spark_tiering.maintenance.tier import Tier
    from spark_tiering.stores.opening import StoreSettings

READING: Final = "objects found; the metadata is being read"
COMPARED: Final = "parts compared with the metadata"
_KIND_OF: Final = {
    SetVerdict.UNKNOWN_KEY: kinds.UNKNOWN_KEY,
    SetVerdict.UNKNOWN_LAYOUT: kinds.UNKNOWN_LAYOUT,
}


@dataclass(frozen=True, slots=True)
class AuditOptions:
    old_prefixes: tuple[str, ...] = ()
    inventory: str = ""
    """Where an inventory is; the audit lists the store when this is empty."""
    min_age_ms: int = DAY_MS
    price: float | None = None
    """The price of a GiB for a month."""
    unit_objects: int = UNIT_OBJECTS


def store_name(store: StoreSettings | None) -> str:
    if store is None:
        return ""
    return store.address if isinstance(store, S3Settings) else str(store.folder.absolute())


def _overview(tier: Tier) -> tuple[LogIdentity, list[PartitionSummary]]:
    moment = tier.moment()
    return moment.identity, moment.partitions()


class Audit:
    """Audit a tier once. The list of orphans exists until the audit is closed."""

    def __init__(
        self,
        tier: Tier,
        options: AuditOptions,
        why_stop: Callable[[], str] = lambda: "",
        meter: Meter | None = None,
    ) -> None:
        prefixes = (tier.request.prefix, *options.old_prefixes)
        check_prefixes(prefixes)
        if not options.inventory and tier.request.store is None:
            raise ConfigError("name the store with --store, or an inventory of it with --inventory")
        self._tier = tier
        self._options = options
        self._why_stop = why_stop
        self._meter = meter or Meter()
        self._prefixes = Prefixes(prefixes[0], prefixes[1:])
        self._spill = RowSpill()
        self._topics = TopicSummaries()
        now_ms = tier.now_ms()
        self.rules = AuditRules(now_ms, now_ms, options.min_age_ms)
        self.report = AuditReport(
            "", store_name(tier.request.store), self._prefixes.all, now_ms, now_ms,
            is_archive=False, price=options.price,
        )  # fmt: skip

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *_: object) -> None:
        self._spill.close()

    def run(self) -> AuditReport:
        """Return the report. Raise the errors of the store or the metadata."""
        report = self.report
        # Of the state itself nothing is kept: the one that counts comes later.
        identity, before = _overview(self._tier)
        seen = StoreShards(self._tier, self._spill, self._prefixes, self._meter)
        if self._options.inventory:
            place, inventory = open_inventory(self._tier, self._options.inventory)
            self.rules = AuditRules(
                self.rules.now_ms, inventory.created_ms, self.rules.min_age_ms, is_inventory=True
            )
            seen.by_inventory(place, inventory, self._why_stop, self._options.unit_objects)
        else:
            seen.by_listing(before, self._why_stop, self._options.unit_objects)
        self._tell_seen(seen)
        if not report.stopped:
            self._meter.restart()
            self._meter.add(READING, seen.objects)
            known = AuditMetadata(self._tier, self._spill, seen.sorting.shards, self._topics)
            known.read(identity, (one.partition for one in before), seen.partitions)
            report.is_archive = known.cluster.is_of_archive
            if known.cluster.note:
                report.notes.append(known.cluster.note)
            report.notes += unmet_notes(self._tier.request, known.summaries)
            report.findings.join(known.findings)
            self._join(known, seen.sorting.shards.count)
        report.topics = self._topics.all()
        if not report.stopped:
            self._tell_topics()
        report.ended_ms = self._tier.now_ms()
        return report

    def _tell_seen(self, seen: StoreShards) -> None:
        report = self.report
        report.source, report.seen_ms = seen.source, self.rules.seen_ms
        report.objects, report.stopped = seen.objects, seen.stopped
        report.others, report.noncurrent = seen.others, seen.noncurrent
        topics = self._tier.request.topics
        if topics.topics or topics.without_topics:
            report.notes.append("only the named topics were compared: others are not reported")
        for key, verdict in OF_KEYS.items():
            found = seen.others.get(key)
            if found is not None:
                kind = _KIND_OF[verdict]
                for example in found.examples:
                    report.findings.add(
                        Finding(kind, example, "its name says nothing of a segment")
                    )
                report.findings.add_unlisted(kind, found.count - len(found.examples))
        if self._tier.request.store is None:
            report.uploads = OpenUploads(why="no store is named")
            report.notes.append("without --store nothing is looked at a second time")
            return
        report.uploads = open_uploads(self._tier, self._prefixes, self.rules)
        if report.uploads.why:
            report.notes.append(f"open uploads could not be listed: {report.uploads.why}")
        for example in report.uploads.examples:
            report.findings.add(Finding(kinds.UPLOAD_OPEN, example, "begun, and not completed"))
        untold = report.uploads.old - len(report.uploads.examples)
        report.findings.add_unlisted(kinds.UPLOAD_OPEN, untold)

    def _tell_topics(self) -> None:
        finished = sum(one.finished for one in self.report.topics)
        lacking = self.report.findings.counts[kinds.OBJECT_MISSING]
        if (
            lacking
            and lacking == finished
            and not self.report.amount(SetVerdict.REFERENCED).objects
        ):
            places = ", ".join(repr(one) for one in self._prefixes.all)
            self.report.notes.append(
                f"not one finished segment has an object under {places}: look whether store and"
                " prefix are those of the brokers"
            )
        for one in self.report.topics:
            for finding in (ended_topic(one, self.rules), small_segments(one)):
                if finding is not None:
                    self.report.findings.add(finding)

    def _join(self, known: AuditMetadata, shards: int) -> None:
        missing, loose = self._spill.file("missing.jsonl"), self._spill.file("loose.jsonl")
        report = self.report
        old_prefix = gone = 0
        with missing.open("w") as lacking, loose.open("w") as ends:

            def heard(joined: JoinResult) -> None:
                nonlocal old_prefix, gone
                for (topic, verdict), amount in joined.amounts.items():
                    self._topics[topic].add_amount(verdict, amount)
                report.findings.join(joined.findings)
                lacking.writelines(map(format_missing, joined.missing))
                ends.writelines(map(format_loose, joined.loose))
                old_prefix += joined.under_old_prefix
                gone += joined.gone_meanwhile
                self._meter.add(COMPARED)

            self._meter.expect(COMPARED, shards)
            units = self._units(known, shards)
            report.stopped = run_waves(self._tier.engine(), units, join, heard, self._why_stop)
        if report.stopped:
            return
        if missing.stat().st_size:
            gone += settle_missing(self._tier, missing, report.findings)
        settled = AuditRecheck(self._tier, known, loose, self._why_stop)
        with self.orphans_file.open("w") as orphans:
            orphans.write(format_head(report.store, report.began_ms))
            settled.settle(self._topics, report.findings, orphans)
        report.notes += settled.notes
        if gone:
            report.notes.append(f"{gone} segments were deleted while this was looked at")
        if old_prefix:
            report.findings.add(
                Finding(
                    kinds.OLD_PREFIX,
                    ", ".join(repr(one) for one in self._prefixes.all[1:]),
                    f"{old_prefix} finished segments have their objects there alone",
                    fields={"segments": old_prefix},
                ),
                1,
            )

    def _units(self, known: AuditMetadata, shards: int) -> Iterator[tuple[JoinTask, int]]:
        for shard in range(shards):
            objects = tuple(self._spill.read("objects", shard))
            segments = tuple(self._spill.read("segments", shard))
            if not objects and not segments:
                self._meter.add(COMPARED)
                continue
            partitions = {one for blob in (*objects, *segments) for one in RowBlob(blob).partitions}
            task = JoinTask(
                objects, segments, {one: known.facts(one) for one in partitions},
                self.rules, self._prefixes.all, self._tier.request.store,
            )  # fmt: skip
            yield task, max(1, self.report.objects // shards)
            self._spill.remove("objects", shard)
            self._spill.remove("segments", shard)

    @property
    def orphans_file(self) -> Path:
        return self._spill.file("orphans.jsonl")

    def orphans(self) -> Iterator[UnknownObjectSet]:
        with self.orphans_file.open() as lines:
            yield from read_list(lines, "orphans", self.report.store, self._prefixes.all)
