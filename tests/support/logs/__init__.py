"""
Metadata logs that fail, and processes that write to logs until they are killed.

    misbehaving_logs       logs that do not end when asked to, or raise anything
    scripted_log           a log that answers with a given error, or holds an answer back
    stored_records         the records that a topic really stored, and a log that notices a cut
    logs_of_every_kind     a partition with every kind of record, beside a list of its offsets
    copied_folders         folders of the metadata topic as copied from a broker or a log of ours
    partition_logs         batches, partition logs and copies of their folders
    scans                  what a scan of a log file found, as plain values
    failing_disks          disks that fail on command
    partition_log_process  a process that appends to a partition log until it is killed
    files_log_process      a process that appends to a `files` log until it is killed
    engine_process         a process with an engine that follows and writes until it is killed
"""
