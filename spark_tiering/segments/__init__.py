"""
Segments of a broker's log as input of copies: read, checked, and completed where files are wrong.

    findings            the parts of a segment, and faults of a part, as values
    partition_files     the protocol by which files are read, and streams of them
    log_folder          that protocol over a folder that this process sees
    segment_listing     the segments of a folder, each with its end
    log_walk            the batches of a log file, every CRC checked
    indexes             offset index and time index: entries, judged against the log
    producer_state      producer snapshots: the format, and the state that batches lead to
    transactions        transaction indexes: the format, and a file judged against the log
    producer_snapshots  a producer snapshot judged against the state that the log leads to
    leader_epochs       leader epochs: known ones, agreement with the log, the cut to carry
    segment_parts       the parts of a copy, and the report on a segment
    companions          the files beside a log as they lie in the folder
    log_pass            one pass over a log that judges all files and makes all of them anew
    settlement          after the pass, for each part: the file as it is, or the one that was made
    segment_inspection  one segment, by these: a task of a copy job calls it
    state_before        the state before a segment, and the last stable offset, from files alone

Invariants:
- A fault is a `Finding`, for any bytes; errors are for files that cannot be read.
- No length is believed, neither one in the bytes nor one that a source tells: what does not fit is
  a finding. Memory is bounded by constants, not by what files say, and does not grow with a log.
- An index is judged by what it means, never by comparing bytes: brokers of other versions, other
  settings and with restarts in between write other files that are as good.
- A file that is missing or wrong is made anew from the log, as a broker makes it when it recovers.
  What cannot be known is not made up: the part is lacking then, and the segment is not copied.
- Nothing here writes, and nothing here decides what is copied; see
  `spark_tiering.copy_plan.candidates`.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
