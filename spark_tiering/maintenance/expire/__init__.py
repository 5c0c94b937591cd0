"""
Expire: segments that retention gives up are deleted, metadata first, then objects.

The job deletes what Kafka's leader would delete, by the one rule in `rlmm.retention.retention`, and
finishes started deletions of segments and partitions. It refuses topics that live brokers expire.

Invariants:

- The job deletes objects only when the metadata has their deletion as started, read again since;
  it publishes the end of the deletion only when they are gone.
- The job works only on topics that it has claimed, as copy jobs do. An open copy that may have a
  writer stays, and so do the segments behind it.
- The next run finds and finishes what a run leaves when it dies.
- The job deletes no object by listing, and no key but those of the segment.

May be imported by `rlmm.cli.tier_maintenance`.

- `actions`: The actions outside of the process: events, objects on executors, claims.
- `current_state`: The state of cluster, metadata and jobs, with a plan for each partition.
- `decision`: The options of a job, and the segments of a partition that go, and why.
- `execution`: The waves: deletions started, objects deleted, deletions finished.
- `job`: The whole job: decide, claim, decide again, execute, report.
- `report`: The report for people and as JSON.
- `topic_ownership`: The owner of a topic's expiry: a job or live brokers.
"""
