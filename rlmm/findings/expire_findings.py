"""Kinds of findings about segments that retention has given up. Pure."""

from __future__ import annotations

from typing import Final

from rlmm.findings.finding import error, note, warning

EXPIRE_LIVE: Final = error(
    "TIER-EXPIRE-LIVE",
    "brokers expire this topic themselves",
    "they reckon with local segments that no job sees, and move the log start with it: a second"
    " deleter would contradict them, so nothing of it was touched",
    "leave it to its brokers, and name other topics: --topic, --without-topic",
)
EXPIRE_UNTOLD: Final = error(
    "TIER-EXPIRE-UNTOLD",
    "it is unknown whether brokers expire this topic",
    "the cluster does not tell these credentials whether the topic is there and tiered, so nothing"
    " of it was touched",
    "grant DESCRIBE and DESCRIBE_CONFIGS on the topic, or leave it out: --without-topic",
)
EXPIRE_BUSY: Final = warning(
    "TIER-EXPIRE-BUSY",
    "another job works on a topic",
    "copying and deleting never go on in one topic at the same time: nothing of it was touched",
    "run the command again when that job has ended; `rlmm tier status` shows it",
)
EXPIRE_LEFT: Final = warning(
    "TIER-EXPIRE-LEFT",
    "a deletion was started and is not finished",
    "objects may be left, and are paid for; no broker reads them any more",
    "see what the store or the metadata said, and run the command again: it goes on there",
)
EXPIRE_SKIPPED: Final = warning(
    "TIER-EXPIRE-SKIPPED",
    "segments that were to go are left",
    "something else happened to them meanwhile, or they could not be asked about",
    "run the command again: it decides anew",
)
EXPIRE_ABSENT: Final = warning(
    "TIER-EXPIRE-ABSENT",
    "finished segments had no objects where they were deleted",
    "either they were taken away before, or they are under another prefix, and then they stay"
    " there and are paid for",
    "`rlmm tier audit` shows what is left under other prefixes; where a prefix has changed, name"
    " the old one: --old-prefix",
)
EXPIRE_DELETION: Final = warning(
    "TIER-EXPIRE-DELETION",
    "a partition, or a topic, whose deletion has not come to its end",
    "the broker that deleted it has died, or never cleaned up: its objects are paid for",
    "`rlmm tier expire --apply` goes on with what is marked in the metadata; what brokers left of"
    " deleted topics goes with --deleted-topics",
)
EXPIRE_REPLACED: Final = note(
    "TIER-EXPIRE-REPLACED",
    "segments of leader epochs that were replaced stay",
    "a broker would delete them; here the epochs are known from the other segments alone",
    "--old-epochs deletes them as well",
)
EXPIRE_OPEN: Final = note(
    "TIER-EXPIRE-OPEN",
    "open copies stay",
    "a broker may be working at them, or a copy job may complete them; retention does not go beyond"
    " one that may be at work",
    "`rlmm tier run` goes on with copies of jobs; --end-open-copies deletes those that no broker"
    " and no job works at",
)
EXPIRE: Final = (
    EXPIRE_LIVE, EXPIRE_UNTOLD, EXPIRE_BUSY, EXPIRE_LEFT, EXPIRE_SKIPPED, EXPIRE_ABSENT,
    EXPIRE_DELETION, EXPIRE_REPLACED, EXPIRE_OPEN,
)  # fmt: skip
