"""
Kinds of findings about a tier: its objects, their manifests and what the metadata says of them.
Pure: whoever looks is elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.inspection.findings import Kind, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

_RESTORE = (
    "bring the object back from a version or a replica of the bucket, or copy the segment again"
    " where a broker still has it; `rlmm explain` says what readers get meanwhile"
)

# ---------------------------------------------------------------------------- objects of a segment

OBJECT_MISSING: Final = Kind(
    "TIER-OBJECT-MISSING",
    Severity.ERROR,
    "an object of a finished segment is not there",
    "readers of these offsets get an error: the metadata says that the segment is whole",
    _RESTORE,
)
OBJECT_LENGTH: Final = Kind(
    "TIER-OBJECT-LENGTH",
    Severity.ERROR,
    "an object has another length than its manifest says",
    "brokers read ranges by the manifest: they get other bytes, or none",
    _RESTORE,
)
OBJECT_DAMAGED: Final = Kind(
    "TIER-OBJECT-DAMAGED",
    Severity.ERROR,
    "an object is not what was written",
    "its checksum, or a frame in it, differs from what its manifest says",
    _RESTORE,
)
MANIFEST_MALFORMED: Final = Kind(
    "TIER-MANIFEST-MALFORMED",
    Severity.ERROR,
    "a manifest that no broker could read",
    "without its manifest a segment cannot be read, whole as its log may be",
    _RESTORE,
)
MANIFEST_MISMATCH: Final = Kind(
    "TIER-MANIFEST-MISMATCH",
    Severity.ERROR,
    "a manifest and the metadata contradict each other",
    "one of the two is of another segment, or was changed: readers get wrong ranges",
    "compare `rlmm segments describe` with the manifest, and restore whichever is wrong",
)
OBJECT_ENCRYPTED: Final = Kind(
    "TIER-OBJECT-ENCRYPTED",
    Severity.WARNING,
    "a segment can be read only with a key that is not here",
    "its objects are there, with the right lengths; what is in them could not be looked at",
    "name the key ring that brokers have: --key-ring FILE",
)
OBJECT_ARCHIVED: Final = Kind(
    "TIER-OBJECT-ARCHIVED",
    Severity.WARNING,
    "an object lies in a storage class that cannot be read at once",
    "brokers get an error until it is restored",
    "restore it, and keep lifecycle rules of the bucket off the prefix of the tier",
)
UNREADABLE: Final = Kind(
    "TIER-UNREADABLE",
    Severity.WARNING,
    "something could not be looked at",
    "nothing is known of it: it is neither whole nor missing",
    "see what the store said, and run the command again",
)
BATCH_DAMAGED: Final = Kind(
    "TIER-BATCH-DAMAGED",
    Severity.ERROR,
    "record batches of a segment are damaged, or are not those that it should hold",
    "consumers stop there with a corrupt record",
    _RESTORE,
)
INDEX_WRONG: Final = Kind(
    "TIER-INDEX-WRONG",
    Severity.ERROR,
    "an index of a segment leads astray",
    "brokers look up positions, times and aborted transactions by it: they read from the wrong"
    " place, or give aborted records to who reads committed ones",
    _RESTORE,
)

# ------------------------------------------------------------------------- segments side by side

EXTENT_GAP: Final = Kind(
    "TIER-EXTENT-GAP",
    Severity.ERROR,
    "offsets between two segments are in none",
    "nobody finds them in the tier",
    "look whether a broker has them: `rlmm tier plan` offers to copy them",
)
EXTENT_OVERLAP: Final = Kind(
    "TIER-EXTENT-OVERLAP",
    Severity.WARNING,
    "two segments hold the same offsets",
    "each is paid for; which one is read is a matter of leader epochs",
    "after a change of leaders this is as it should be; `rlmm verify` tells the harmless ones",
)
NEXT_OFFSET: Final = Kind(
    "TIER-NEXT-OFFSET",
    Severity.ERROR,
    "a segment's records end elsewhere than its metadata says",
    "offsets at its end are promised and not there, or there and never found",
    _RESTORE,
)
START_OFFSET: Final = Kind(
    "TIER-START-OFFSET",
    Severity.ERROR,
    "a segment's records begin elsewhere than its metadata says",
    "offsets at its start are promised and not there, or there and never found",
    _RESTORE,
)
EPOCH_ORDER: Final = Kind(
    "TIER-EPOCH-ORDER",
    Severity.ERROR,
    "leader epochs and offsets do not rise together",
    "brokers look segments up by leader epoch: they find the wrong one, or none",
    "see `rlmm verify` and `rlmm history` for who wrote it",
)

# ------------------------------------------------------------------ what nobody has a use for

INCOMPLETE_SET: Final = Kind(
    "TIER-INCOMPLETE-SET",
    Severity.WARNING,
    "objects of a copy that was never finished",
    "they are paid for, and nobody reads them",
    "the next `rlmm tier run` goes on with them, or ends them",
)
ORPHAN: Final = Kind(
    "TIER-ORPHAN",
    Severity.WARNING,
    "objects that no metadata points to",
    "they are paid for, and no retention ever deletes them",
    "`rlmm tier audit --save-orphans FILE`, look at it, then --orphans FILE --delete-orphans",
)
UNKNOWN_KEY: Final = Kind(
    "TIER-UNKNOWN-KEY",
    Severity.NOTE,
    "an object whose name is of no known layout",
    "it is of something else, or of a plugin that is not known here; it is never touched",
    "see whose it is; a prefix of its own for the tier keeps them apart",
)
TOPIC_UNKNOWN: Final = Kind(
    "TIER-TOPIC-UNKNOWN",
    Severity.WARNING,
    "a topic id that the cluster does not know any more",
    "its bytes stay for ever: a deletion that stopped half-way, or a topic that was made anew",
    "`rlmm tier expire` finishes deletions; `rlmm tier audit` proves what is left",
)

COMMON: Final = (
    OBJECT_MISSING, OBJECT_LENGTH, OBJECT_DAMAGED, MANIFEST_MALFORMED, MANIFEST_MISMATCH,
    OBJECT_ENCRYPTED, OBJECT_ARCHIVED, UNREADABLE, BATCH_DAMAGED, INDEX_WRONG, EXTENT_GAP,
    EXTENT_OVERLAP, NEXT_OFFSET, START_OFFSET, EPOCH_ORDER, INCOMPLETE_SET, ORPHAN, UNKNOWN_KEY,
    TOPIC_UNKNOWN,
)  # fmt: skip

# ------------------------------------------------------------- kinds of one command alone, below

KINDS_BY_COMMAND: Final[Mapping[str, tuple[Kind, ...]]] = {
    "tier verify": COMMON[:15],
    "tier audit": COMMON[15:],
}
"""Each kind once: by the command that looks for it first."""
