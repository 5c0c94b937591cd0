"""
Sealed files of a broker's log folders, read only, for copy jobs that do not see its disks.

By module, bottom up:

    sealed_files         the files of a partition that may be read, by their names
    byte_ranges          the bytes of a file that a request asks for
    disk                 folders and files, opened name by name below a configured folder: blocks
    folder_listing       the partitions in the configured folders, and the brokers of these
    last_stable_offsets  last stable offsets, kept for a moment
    statistics           counts of served and refused requests
    views                partitions and files as they are shown
    sealed_segments      these together: partitions, their files, one file

Invariants:

- A client reads the file of a rolled segment that ends at or below the last stable offset of its
  partition, a producer snapshot at or below it, or one of two small files beside them; and nothing
  while that offset is not known.
- No path is made from a request: folders are those of the configuration, names match a
  strict pattern and stand in the folder's own listing, and no symbolic link is followed.
- Nothing stays open between two pieces of a file, so that a disk gives back what the broker
  deletes; a file that is another one by the next piece ends the answer.
- Nothing is written.

May be imported by `rlmm.http`, `rlmm.metrics`, `rlmm.process`.
"""
