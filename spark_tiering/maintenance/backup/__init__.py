"""
Every event of the metadata topic out to one file, and from it into an empty log again.

A backup holds records as they are: metadata partition, offset, time, key, value and headers, what
nobody understands included, and beside each, for people, what it says. As lines of JSON, plain or
compressed (`.jsonl`, `.jsonl.gz`, `.jsonl.zst`), or as Parquet (`.parquet`), by the name of the
file; both hold the same, and carry one digest of it.

By module, bottom up:

    rows            PURE. a record, what was lost, header and footer, the digest of them all
    lines           PURE. the same as lines of JSON, both ways; nothing is believed
    log_comparison  PURE. how far a log holds a backup already, and where its offsets went
    report          PURE. what an export and an import tell of what they did
    records         from a log to rows, a record set at a time
    tables          the same as Parquet
    files           by its name, a backup written or read; checked from its first line to its last
    targets         logs that take records: a folder of our own, the topic of a cluster
    export          the whole of an export
    import_         the whole of an import

Invariants:

- A file is used whole or not at all: before anything is published all of it was read, and its
  digest was right.
- An import appends to a log that holds nothing, or that holds the first records of the very same
  backup: then it goes on behind them.
- What is imported is read back and compared.
- Memory is bounded by a few record sets, whatever the length of log and file.

May be imported by `rlmm.cli.tier_maintenance`, `spark_tiering.maintenance.rebuild`.

"""
