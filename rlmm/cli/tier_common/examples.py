"""Examples for the --help of `rlmm tier`; a test runs the parser on each."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = 76
"""Terminals would break longer lines, and an operator could not copy them."""

_ARCHIVE: Final = (
    "--log-dir /var/lib/kafka",
    "--bootstrap-server broker:9092 --embedded archive",
    "--store s3://bucket/kafka/",
)
_SIDECARS: Final = (
    "--source-sidecar https://broker-1:7405",
    "--source-token-file source.token --sidecar rlmm:7404",
    "--bootstrap-server broker-1:9092 --store s3://bucket/kafka/",
)

EXAMPLES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "plan": (
        ("rlmm tier plan", *_ARCHIVE, "--topic 'logs-*' --min-age 1d --save plan.json"),
        ("rlmm tier plan --log-dir copied --offline", "--embedded archive --store /mnt/archive"),
    ),
    "run": (
        ("rlmm tier run", *_ARCHIVE, "--plan plan.json"),
        ("rlmm tier run", *_SIDECARS, "--master spark://master:7077 --max-mb-per-s 200"),
        ("rlmm tier run --adopt --topic orders", *_SIDECARS),
        (
            "rlmm tier run --no-spark --log-dir copied --offline",
            "--embedded archive --store /mnt/archive --report report.json",
        ),
    ),
    "status": (
        ("rlmm tier status --store s3://bucket/kafka/",),
        ("rlmm tier status --store /mnt/archive --output json",),
    ),
    "pause": (("rlmm tier pause --store s3://bucket/kafka/", "20260131T010000Z-worker-1-3f9a2c"),),
    "sweep": (
        ("rlmm tier sweep --store s3://bucket/kafka/ --older-than 2d",),
        ("rlmm tier sweep --store s3://bucket/kafka/ --older-than 2d --end",),
    ),
    "expire": (
        ("rlmm tier expire --embedded archive --store s3://bucket/kafka/", "--retention-ms 365d"),
        (
            "rlmm tier expire --embedded archive --store s3://bucket/kafka/",
            "--retention-ms 365d --max-delete 1000 --apply --report expired.json",
        ),
        (
            "rlmm tier expire --bootstrap-server broker:9092 --deleted-topics",
            "--store s3://bucket/kafka/ --topic 'logs-*' --apply",
        ),
    ),
    "export": (
        (
            "rlmm tier export --sidecar rlmm:7404 --store s3://bucket/kafka/",
            "--topic orders --from-time -1d --save plan.parquet",
        ),
        (
            "rlmm tier export --bootstrap-server broker:9092",
            "--store s3://bucket/kafka/ --since yesterday.json --save today.json",
        ),
        (
            "rlmm tier export --from-manifests --store /mnt/archive --no-spark",
            "--range orders-3@1000:2000 --fail-on-gap",
        ),
        ("rlmm tier export --log-dirs copied --token plan.json --save again.json",),
        ("rlmm tier export --sidecar rlmm:7404 --check plan.parquet",),
    ),
    "verify": (
        ("rlmm tier verify --sidecar rlmm:7404 --store s3://bucket/kafka/",),
        (
            "rlmm tier verify --embedded archive --store /mnt/archive --no-spark",
            "--deep --sample 2% --max-mb-per-s 100 --report verified.json",
        ),
        (
            "rlmm tier verify --bootstrap-server broker:9092",
            "--store s3://bucket/kafka/ --old-prefix tier-2024/",
            "--max-requests 100000",
        ),
    ),
    "audit": (
        (
            "rlmm tier audit --bootstrap-server broker:9092",
            "--store s3://bucket/kafka/ --price-gib-month 0.023 --report audit.json",
        ),
        (
            "rlmm tier audit --sidecar rlmm:7404 --store s3://bucket/kafka/",
            "--inventory s3://lists/bucket/all/2026-01-31T01-00Z/manifest.json",
        ),
        (
            "rlmm tier audit --bootstrap-server broker:9092",
            "--store s3://bucket/kafka/ --old-prefix tier-2024/",
            "--save-orphans orphans.jsonl",
        ),
        (
            "rlmm tier audit --bootstrap-server broker:9092",
            "--store s3://bucket/kafka/ --orphans orphans.jsonl --delete-orphans",
        ),
        ("rlmm tier audit --embedded archive --store /mnt/archive --no-spark",),
    ),
    "adopt resume": (("rlmm tier adopt resume orders", *_SIDECARS),),
    "adopt abort": (("rlmm tier adopt abort orders", *_SIDECARS),),
    "rebuild": (
        (
            "rlmm tier rebuild --save events.jsonl --custom-metadata remote-size",
            "--store s3://bucket/kafka/ --embedded archive",
        ),
        (
            "rlmm tier rebuild --save events.jsonl --backup yesterday.jsonl.gz",
            "--store s3://bucket/kafka/ --bootstrap-server broker:9092",
        ),
        ("rlmm tier rebuild --apply events.jsonl --dry-run --embedded archive",),
        ("rlmm tier rebuild --apply events.jsonl --sidecar rlmm:7404",),
    ),
    "backup export": (
        ("rlmm tier backup export events.jsonl.gz --sidecar rlmm:7404",),
        ("rlmm tier backup export events.parquet", "--bootstrap-server broker:9092"),
        ("rlmm tier backup export events.jsonl --embedded archive",),
    ),
    "backup import": (
        ("rlmm tier backup import events.jsonl.gz --embedded archive",),
        ("rlmm tier backup import events.jsonl.gz --embedded archive --apply",),
        ("rlmm tier backup import events.parquet", "--bootstrap-server broker:9092 --apply"),
    ),
}
"""By command: examples of one line, or of several lines that belong together."""


def ending(command: str) -> str:
    written = "\n\n".join(f"\b\n{_continued(lines)}" for lines in EXAMPLES[command])
    prefix = f"RLMM_TIER_{command.upper().replace(' ', '_')}"
    return (
        f"Examples:\n\n{written}\n\n"
        f"Every flag is an environment variable as well, but for those that destroy or publish:"
        f" --store is {prefix}_STORE. What may be repeated is parted by blanks there, and folders"
        " by colons; a switch is 1 or 0."
    )


def _continued(lines: tuple[str, ...]) -> str:
    return " \\\n".join(line if number == 0 else f"    {line}" for number, line in enumerate(lines))
