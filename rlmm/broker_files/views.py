"""The partitions and files of brokers as they are shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, to_builtins

from rlmm.broker_files.folder_listing import list_folders
from rlmm.broker_files.sealed_files import SealedFiles, why_not
from rlmm.metadata.ids import INT32_MAX, INT32_MIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlmm.broker_files.disk import SealedFileFacts
    from rlmm.broker_files.last_stable_offsets import KnownStableOffset

Int32 = Annotated[int, Meta(ge=INT32_MIN, le=INT32_MAX)]
Offset = Annotated[int, Meta(extra_json_schema={"format": "int64"})]


class BrokerFolderView(Struct, forbid_unknown_fields=True):
    folder: str
    node_id: Annotated[Int32 | None, Meta(description="Of the broker, as its folder tells it.")]
    cluster_id: str | None


class BrokerPartitionView(Struct, forbid_unknown_fields=True):
    folder: str
    topic_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{22}$")]
    topic: str
    partition: Int32
    high_watermark: Annotated[
        Offset | None, Meta(description="The last that the broker has written down.")
    ]


class UnusablePlaceView(Struct, forbid_unknown_fields=True):
    place: str
    why: str


class BrokerPartitionsView(Struct, forbid_unknown_fields=True):
    folders: list[BrokerFolderView]
    partitions: list[BrokerPartitionView]
    unusable: list[UnusablePlaceView]


class BrokerFileView(Struct, forbid_unknown_fields=True):
    name: str
    size_bytes: Annotated[int, Meta(ge=0)]
    modified_ms: Offset
    is_readable: bool
    why: Annotated[str | None, Meta(description="Why it is not readable.")]


class BrokerFilesView(Struct, forbid_unknown_fields=True):
    last_stable_offset: Annotated[Offset | None, Meta(description="As the cluster tells it.")]
    why: Annotated[str | None, Meta(description="Why there is none: then no file is readable.")]
    files: list[BrokerFileView]


def dumped(shown: object) -> bytes:
    return json.dumps(to_builtins(shown), ensure_ascii=True).encode() + b"\n"


def partitions_view(
    folders: tuple[str, ...], serves: Callable[[str], bool]
) -> BrokerPartitionsView:
    listed = list_folders(folders, serves)
    return BrokerPartitionsView(
        folders=[
            BrokerFolderView(
                folder=one.path, node_id=one.node_id, cluster_id=one.cluster_id or None
            )
            for one in listed.folders
        ],
        partitions=[
            BrokerPartitionView(
                folder=place.folder,
                topic_id=str(place.partition.topic_id),
                topic=place.partition.topic,
                partition=place.partition.partition,
                high_watermark=high_watermark,
            )
            for place, high_watermark in listed.partitions
        ],
        unusable=[UnusablePlaceView(place=place, why=why) for place, why in listed.unusable],
    )


def files_view(facts: dict[str, SealedFileFacts], stable: KnownStableOffset) -> BrokerFilesView:
    sealed = SealedFiles(facts)
    files: list[BrokerFileView] = []
    for name in sorted(facts):
        why = why_not(sealed.needs(name), stable.offset)
        files.append(
            BrokerFileView(
                name=name,
                size_bytes=facts[name].size_bytes,
                modified_ms=facts[name].modified_ms,
                is_readable=not why,
                why=why or None,
            )
        )
    return BrokerFilesView(
        last_stable_offset=stable.offset,
        why=None if stable.trouble is None else str(stable.trouble),
        files=files,
    )
