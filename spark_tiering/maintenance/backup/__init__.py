"""
Backup: every event of the metadata topic is exported to one file, and imported into an empty log.

A backup holds records as they are, also undecodable ones, with the event's fields for people. It is
a file of JSON lines (`.jsonl`, `.jsonl.gz`, `.jsonl.zst`) or of Parquet (`.parquet`), by its name;
both forms hold the same, with the same digest.

Invariants:

- An import reads a file to its end, with the right digest, before it publishes anything.
- An import appends to a log that is empty, or that holds the first records of the same backup.
- An import reads back what it has appended, and compares it.
- Memory is bounded by a few record sets, whatever the length of log and file.

May be imported by `rlmm.cli.tier_maintenance`, `spark_tiering.maintenance.rebuild`.

- `export`: The whole export.
- `files`: A backup, written or read by its name.
- `import_`: The whole import.
- `records`: The records of a log as rows.
- `report`: The reports of an export and of an import.
- `rows`: Records, lost offsets, header, footer, their digest, and the same as JSON lines.
- `tables`: Rows as Parquet.
- `targets`: Logs that take records: a folder, the topic of a cluster.
"""
