"""Subcommands of `rlmm`: where each is defined, and its line of help. Imports none of them."""

_QUERIES = (
    "check", "diff", "doctor", "events", "explain", "history", "lag", "preflight",
    "rehearse_compaction", "segments", "status", "stuck", "support_bundle", "usage", "verify",
)  # fmt: skip
SUBCOMMANDS = {
    **{name.replace("_", "-"): f"rlmm.cli.queries.{name}:{name}" for name in _QUERIES},
    "config": "rlmm.cli.common.config_options:config",
    "conformance": "rlmm_conformance.command:conformance",
    "demo": "rlmm_demo.command:demo",
    "offsets": "rlmm.cli.queries.lag:offsets",
    "serve": "rlmm.cli.service.serve:serve_command",
    "snapshot": "rlmm.cli.snapshot.write:snapshot",
    "tier": "rlmm.cli.tier.command:tier",
}
"""Subcommand -> its click command, as module:attribute."""
SHORT_HELP = {
    "check": "Judge thresholds once: exit code 0 when all is well, 1 when not.",
    "config": "Show the configuration.",
    "conformance": "Compare an implementation with Kafka's recorded answers.",
    "demo": "Tell one story in nine screens: a broker, copies by Spark, a kill, a disaster.",
    "diff": "Show what differs between two moments: segments, how far was copied, deletions.",
    "doctor": "Examine the settings of the metadata topic, brokers and topics.",
    "events": "Show the events of the metadata topic, decoded, and what became of each.",
    "explain": "Explain why an offset is found in the tier, or is not, and what becomes of it.",
    "history": "Show every event about a segment or a user partition, and what became of it.",
    "lag": "Show how far copies are behind, and when disks are full.",
    "offsets": "Show where each log and its tier begin and end.",
    "preflight": "Show what depends on the tier, before a move or a deletion.",
    "rehearse-compaction": "Play the log cleaner through, before anyone turns compaction on.",
    "segments": "List segments, describe one, find the one that holds an offset.",
    "serve": "Run the service until SIGTERM or SIGINT.",
    "snapshot": "List, verify, write, export and import snapshots.",
    "status": "Show how each metadata partition stands, and sums.",
    "stuck": "Show copies and deletions that are open for too long.",
    "support-bundle": "Pack the documents that support needs.",
    "tier": "Copy cold segments to an object store, and maintain the tier.",
    "usage": "Sum up bytes and segments, waste, what goes soon, and cost.",
    "verify": "Look for holes, overlaps and segments that no look-up finds.",
}
"""The help line of each, so that a list of commands imports none; one without a line is asked."""
WITH_OWN_VARIABLES = frozenset({"config", "conformance", "demo", "serve", "snapshot", "tier"})
"""Commands that name their own variables of the environment, or take none."""
COMMANDS_OF_VARIABLES = (SUBCOMMANDS.keys() - WITH_OWN_VARIABLES) | {"tier"}
"""Commands whose flags are variables that a configuration does not mean."""
