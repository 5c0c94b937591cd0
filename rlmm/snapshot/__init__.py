"""
Snapshots: the state of one metadata partition in one file, so that a restart reads less of the log.

A snapshot holds watermarks that a replay of a trimmed log cannot bring again. So none is trusted
before its checksum, identity and position are checked, and no good one is removed before a newer
one is on the medium. `docs/snapshot-format.md` describes the file.

May be imported by every package above it in the layers of `pyproject.toml`.

- `archive`: A set of files as one plain tar.
- `atomic`: One file written so that a crash leaves the old or the new one.
- `catalog`: Which snapshots exist, and where; sets aside and prunes.
- `decoding`: A file to its header and images, piece by piece; nothing is trusted.
- `disk_threads`: A few threads at a time; one that hangs holds up no other partition.
- `encoding`: A header and images to a file, piece by piece.
- `files`: One file verified, read and written; errors name its path.
- `folder_check`: The files in a folder, each with its header or its fault.
- `format`: The byte tables, the header both ways, the limits.
- `refusal_counts`: Why a file is not used, counted by kind and named.
- `settings`: Interval, number of files, reserve of the disk.
- `snapshot_folder`: The work of the store's threads: one file found and read, one written.
- `snapshot_writer`: The task that decides which partition is due.
- `store`: The newest snapshot that is good and fits; writing the next.
- `transfer`: Export and import of whole sets, for backups and new machines.
"""
