"""Kinds of findings about a tier: its objects, their manifests, and the metadata of both. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.findings import expire_findings as expire_kinds
from rlmm.findings.finding import FindingKind, error, note, warning

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESTORE = (
    "bring the object back from a version or a replica of the bucket, or copy the segment again"
    " where a broker still has it; `rlmm explain` says what readers get meanwhile"
)

# ---------------------------------------------------------------------------- objects of a segment

OBJECT_MISSING: Final = error(
    "TIER-OBJECT-MISSING",
    "an object of a finished segment is not there",
    "readers of these offsets get an error: the metadata says that the segment is whole",
    _RESTORE,
)
OBJECT_LENGTH: Final = error(
    "TIER-OBJECT-LENGTH",
    "an object has another length than its manifest says",
    "brokers read ranges by the manifest: they get other bytes, or none",
    _RESTORE,
)
OBJECT_DAMAGED: Final = error(
    "TIER-OBJECT-DAMAGED",
    "an object is not what was written",
    "its checksum, or a frame in it, differs from what its manifest says",
    _RESTORE,
)
MANIFEST_MALFORMED: Final = error(
    "TIER-MANIFEST-MALFORMED",
    "a manifest that no broker could read",
    "without its manifest a segment cannot be read, whole as its log may be",
    _RESTORE,
)
MANIFEST_MISMATCH: Final = error(
    "TIER-MANIFEST-MISMATCH",
    "a manifest and the metadata contradict each other",
    "one of the two is of another segment, or was changed: readers get wrong ranges",
    "compare `rlmm segments describe` with the manifest, and restore whichever is wrong",
)
OBJECT_ENCRYPTED: Final = warning(
    "TIER-OBJECT-ENCRYPTED",
    "a segment can be read only with a key that is not here",
    "its objects are there, with the right lengths; their content could not be looked at",
    "name a key ring with the keys that brokers have: --key-ring FILE",
)
OBJECT_ARCHIVED: Final = warning(
    "TIER-OBJECT-ARCHIVED",
    "an object lies in a storage class that cannot be read at once",
    "brokers get an error until it is restored",
    "restore it, and keep lifecycle rules of the bucket off the prefix of the tier",
)
UNREADABLE: Final = warning(
    "TIER-UNREADABLE",
    "something could not be looked at",
    "nothing is known of it: it is neither whole nor missing",
    "see what the store said, and run the command again",
)
BATCH_DAMAGED: Final = error(
    "TIER-BATCH-DAMAGED",
    "record batches of a segment are damaged, or are not those that it should hold",
    "consumers stop there with a corrupt record",
    _RESTORE,
)
INDEX_WRONG: Final = error(
    "TIER-INDEX-WRONG",
    "an index of a segment leads astray",
    "brokers look up positions, times and aborted transactions by it: they read from the wrong"
    " place, or give aborted records to who reads committed ones",
    _RESTORE,
)

# ------------------------------------------------------------------------- segments side by side

EXTENT_GAP: Final = error(
    "TIER-EXTENT-GAP",
    "offsets between two segments are in none",
    "no reader finds them in the tier",
    "look whether a broker has them: `rlmm tier plan` offers to copy them",
)
EXTENT_OVERLAP: Final = note(
    "TIER-EXTENT-OVERLAP",
    "two segments hold the same offsets",
    "each is paid for; which one is read is a matter of leader epochs",
    "after a change of leaders this is as it should be; `rlmm verify` tells the harmless ones",
)
NEXT_OFFSET: Final = error(
    "TIER-NEXT-OFFSET",
    "a segment's records end elsewhere than its metadata says",
    "offsets at its end are promised and not there, or there and never found",
    _RESTORE,
)
START_OFFSET: Final = error(
    "TIER-START-OFFSET",
    "a segment's records begin elsewhere than its metadata says",
    "offsets at its start are promised and not there, or there and never found",
    _RESTORE,
)
EPOCH_ORDER: Final = error(
    "TIER-EPOCH-ORDER",
    "leader epochs and offsets do not rise together",
    "brokers look segments up by leader epoch: they find the wrong one, or none",
    "see `rlmm verify` and `rlmm history` for who wrote it",
)

# ------------------------------------------------------------------ objects that have no use

INCOMPLETE_SET: Final = warning(
    "TIER-INCOMPLETE-SET",
    "objects of a copy that was never finished",
    "they are paid for, and no broker reads them",
    "the next `rlmm tier run` goes on with copies that the metadata knows, or ends them; what no "
    "metadata knows stays until something proves that it is an orphan",
)
ORPHAN: Final = warning(
    "TIER-ORPHAN",
    "objects that no metadata points to",
    "they are paid for, and no retention ever deletes them",
    "`rlmm tier audit --save-orphans FILE`, look at it, then --orphans FILE --delete-orphans",
)
UNKNOWN_KEY: Final = note(
    "TIER-UNKNOWN-KEY",
    "an object whose name is of no known layout",
    "it is of something else, or of a plugin that is not known here; it is never touched",
    "see whose it is; a prefix of its own for the tier keeps them apart",
)
TOPIC_UNKNOWN: Final = warning(
    "TIER-TOPIC-UNKNOWN",
    "a topic id that the cluster does not know any more",
    "its bytes stay for ever: a deletion that stopped half-way, or a topic that was made anew",
    "`rlmm tier expire` finishes deletions; `rlmm tier audit` proves what is left",
)

KEY_IMPOSSIBLE: Final = warning(
    "TIER-KEY-IMPOSSIBLE",
    "segments of a topic or a partition that no broker can have",
    "no object can have their name: another program than a broker wrote their events, and every job"
    " leaves them out",
    "`rlmm history` says where their events are; let brokers alone write to the metadata topic",
)

COMMON: Final = (
    OBJECT_MISSING, OBJECT_LENGTH, OBJECT_DAMAGED, MANIFEST_MALFORMED, MANIFEST_MISMATCH,
    OBJECT_ENCRYPTED, OBJECT_ARCHIVED, UNREADABLE, BATCH_DAMAGED, INDEX_WRONG, EXTENT_GAP,
    EXTENT_OVERLAP, NEXT_OFFSET, START_OFFSET, EPOCH_ORDER, INCOMPLETE_SET, ORPHAN, UNKNOWN_KEY,
    TOPIC_UNKNOWN, KEY_IMPOSSIBLE,
)  # fmt: skip

# ------------------------------------------------------------- kinds of one command alone, below

# verify

KEY_WRONG: Final = error(
    "TIER-KEY-WRONG",
    "a key ring whose key does not open a segment that names it",
    "a key of the same name is another one: either here, or where the segment was written; the"
    " content of the segment could not be looked at",
    "compare the key with that of the brokers; a key that was rotated keeps its old id",
)
TIMESTAMP_WRONG: Final = warning(
    "TIER-TIMESTAMP-WRONG",
    "the newest record of a segment is of another time than its metadata says",
    "retention by time and look-ups by time go by the metadata: the segment is deleted too early or"
    " too late, or passed over",
    "only a new copy changes it; see with `rlmm segments describe` what retention goes by",
)
VERIFY: Final = (KEY_WRONG, TIMESTAMP_WRONG)

# rebuild and backup

METADATA_LOST: Final = error(
    "TIER-METADATA-LOST",
    "whole segments in the store that the metadata does not know",
    "no reader finds the records in them, and no retention ever deletes them",
    "look at the file of events, then `rlmm tier rebuild --apply FILE`",
)
METADATA_DIFFERS: Final = warning(
    "TIER-METADATA-DIFFERS",
    "what a manifest gives back of a segment is not what the metadata has",
    "one of the two was changed, or the custom metadata is configured otherwise than was said;"
    " nothing is published of such a segment",
    "compare the fields that are named; `--custom-metadata` says what brokers keep",
)
DELETED_NOT_GONE: Final = note(
    "TIER-DELETED-NOT-GONE",
    "a segment whose deletion was begun, and whose objects are there still",
    "its events are not brought back: readers would find what retention has given up",
    "`rlmm tier audit` proves which objects are not needed any more, and deletes them where it is"
    " told to",
)
COPY_OPEN: Final = note(
    "TIER-COPY-OPEN",
    "a whole segment whose copy was never told as finished",
    "its broker or job may be about to do it, or has copied the same records again since: only the"
    " one that began the copy may finish it",
    "`rlmm stuck` tells how long it has been open; the next `rlmm tier run` ends copies of its own",
)
EVENT_REFUSED: Final = warning(
    "TIER-EVENT-REFUSED",
    "events of a file that contradict the metadata as it is now",
    "they were right when the file was made; published now they would bring back what is deleted,"
    " or take the place of a newer copy",
    "run `rlmm tier rebuild` again, and look at the new difference",
)
RECORDS_LOST: Final = error(
    "TIER-RECORDS-LOST",
    "records of the metadata topic that could not be read",
    "what they said is in no backup, and in no state that is replayed from one",
    "read the partition from another replica, or from copies of its folders: --log-dirs",
)
REBUILD: Final = (METADATA_LOST, METADATA_DIFFERS, DELETED_NOT_GONE, COPY_OPEN, EVENT_REFUSED)
BACKUP: Final = (RECORDS_LOST,)

# ----------------------------------------------------------------------- `rlmm tier audit` alone

UNREFERENCED: Final = warning(
    "TIER-UNREFERENCED",
    "objects of a segment that no metadata knows, and nothing proves that none ever will",
    "they are paid for; but were metadata lost, these may be all that is left of the records",
    "`rlmm tier rebuild` tells what they are; they are never deleted as they are",
)
DELETE_UNFINISHED: Final = warning(
    "TIER-DELETE-UNFINISHED",
    "a deletion that was begun long ago and is not finished",
    "no broker reads the segment any more, and its objects are paid for",
    "`rlmm tier expire` finishes it, unless a broker does; `rlmm stuck` tells who began it",
)
COPY_UNFINISHED: Final = warning(
    "TIER-COPY-UNFINISHED",
    "a copy that was begun long ago, of which the store has nothing",
    "its broker or job has died, or was refused: the offsets are in no segment",
    "the next `rlmm tier run` ends it, a broker's own is ended by retention; see `rlmm stuck`",
)
DUPLICATE_SET: Final = warning(
    "TIER-DUPLICATE-SET",
    "the objects of a segment lie there a second time",
    "they are paid for twice; readers and deletions go by one of the two",
    "compare both, and remove the one that the metadata does not mean",
)
OLD_PREFIX: Final = note(
    "TIER-OLD-PREFIX",
    "finished segments whose objects lie under a prefix of before",
    "brokers look for manifests, and delete, under the prefix of now alone",
    "let brokers keep the prefix that the objects have, or copy the objects to the new one",
)
UPLOAD_OPEN: Final = warning(
    "TIER-UPLOAD-OPEN",
    "uploads that were begun long ago and neither completed nor ended",
    "their parts are paid for, and no listing shows them",
    "`rlmm tier sweep --end` ends them; a lifecycle rule of the bucket does so for ever",
)
UNKNOWN_LAYOUT: Final = note(
    "TIER-UNKNOWN-LAYOUT",
    "objects in the layout of Kafka's own test storage",
    "it is recognised and not read: whether a segment needs them is not known",
    "brokers with LocalTieredStorage have another store than this tier: keep them apart",
)
SMALL_SEGMENTS: Final = note(
    "TIER-SMALL-SEGMENTS",
    "a topic whose segments are small",
    "each has three objects, whatever its size: requests cost more than the bytes",
    "raise segment.bytes and segment.ms of the topic; copied segments stay as they are",
)
AUDIT: Final = (
    UNREFERENCED, DELETE_UNFINISHED, COPY_UNFINISHED, DUPLICATE_SET, OLD_PREFIX, UPLOAD_OPEN,
    UNKNOWN_LAYOUT, SMALL_SEGMENTS,
)  # fmt: skip

# export

PLAN_GAP: Final = warning(
    "TIER-PLAN-GAP",
    "offsets that a plan was asked for are not in the tier",
    "readers of the plan lack these records: expired, not tiered yet, being copied, or lost",
    "the reason says which; `rlmm explain TOPIC-N@OFFSET` tells more of one offset",
)
PLAN_GONE: Final = error(
    "TIER-PLAN-SEGMENT-GONE",
    "a segment of a plan is not there any more",
    "it cannot be read, or what was read of it may be cut: retention went on since it was planned",
    "make the plan again, and take records that were not read yet from elsewhere",
)
PLAN_DELETING: Final = warning(
    "TIER-PLAN-SEGMENT-DELETING",
    "a segment of a plan is being deleted",
    "its objects may be gone at any moment, one before the other",
    "believe what was read of it only if all of it came; lengthen retention before the next plan",
)
PLAN_UNTOLD: Final = warning(
    "TIER-PLAN-UNTOLD",
    "a manifest that tells of no segment",
    "the plan lacks what its segment holds, and says of it that it is missing",
    "`rlmm tier verify` says what is wrong with it; a plan of the metadata needs no manifest",
)
EXPORT: Final = (PLAN_GAP, PLAN_GONE, PLAN_DELETING, PLAN_UNTOLD)

KINDS_BY_COMMAND: Final[Mapping[str, tuple[FindingKind, ...]]] = {
    "tier verify": (*COMMON[:15], *VERIFY),
    "tier audit": (*COMMON[15:], *AUDIT),
    "tier rebuild": REBUILD,
    "tier backup": BACKUP,
    "tier expire": expire_kinds.EXPIRE,
    "tier export": EXPORT,
}
"""Each kind once: by the command that looks for it first."""
