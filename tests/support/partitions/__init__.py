"""
The local files of users' partitions.

    segments            partitions in memory: the files of a few segments, and damage to them
    written_logs        logs written record by record, with the records that a reader must get
    log_dirs            log folders of brokers with partitions in them
    broker_folders      log folders of a broker, and a server that serves them
    inspection_process  a process that inspects a segment of any size and prints its memory
"""
