"""
Snapshots: the state of one metadata partition in one file, so that a restart need not read the
whole log again.

A snapshot is a cache with a memory: losing all of them costs a replay, and what a replay can no
longer bring (a log whose head was trimmed) is in them alone. So none is trusted before its
checksum, its identity and its position are, and none that is good is removed before a newer one is
on the medium. The file is described byte by byte in `docs/snapshot-format.md`.

    store = SnapshotStore(folder, identity, PythonShard, settings)
    restored = await store.restore(partition, bounds.log_start_offset, bounds.high_watermark)
    writer = SnapshotWriter(source, store)
    await writer.run()          # until it is cancelled
    await writer.flush()        # the last ones, when nothing is applied any more

Modules, bottom up:

    settings      what can be chosen
    source        what the writer asks of the engine: positions, and shards at one moment
    format        PURE. The byte tables, the header both ways, the limits
    encoding      PURE. A header and images to a file, piece by piece
    decoding      PURE. A file to its header and images, piece by piece; nothing is believed
    atomic        one file written so that a crash leaves the old or the new one
    catalog       which snapshots exist, and where; sets aside and prunes
    refusals      why a file is not used, counted by kind and named
    files         one file verified, read and written, with errors of ours
    store_io      what the threads do: one found and read, one written
    store         the newest one that is good and fits; writing the next
    writer        the task: which partition is due
    archive       a set of files as one plain tar
    folder_check  what is in a folder
    transfer      export and import of whole sets, for backups and new machines

Invariants:

- After a crash at any instant a snapshot's path holds the old file or the new one, whole. What a
  crash leaves beside it is removed at the next start.
- A file is used whole or not at all: its checksum covers every byte, is verified before anything is
  read out of it, and again while it is read.
- A snapshot fits when its cluster, topic, partition count and partition are the log's and its
  position lies within the log's bounds. One that lies beyond the log's end is set aside for ever:
  when the log has grown past it again, it would fit by accident.
- What is due is judged per metadata partition, by position. An unchanged one is not written again.
- Nothing here blocks the event loop: files, checksums, encoding and decoding run in threads.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
