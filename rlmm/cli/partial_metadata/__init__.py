"""
Answers of commands from partial metadata: some metadata partitions cannot be read.

May be imported by `rlmm.cli.common`, `rlmm.cli.queries`.

- `assigned_partitions`: A question about everything, asked of a service that was given some
  metadata partitions alone.
- `readable_partitions`: The log of a source where some metadata partitions cannot be read.
- `ready_partitions`: A question about one user partition, or one segment, asked of a source of
  which not all metadata partitions are ready.
"""
