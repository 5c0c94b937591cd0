"""
A copy job: a plan is made and carried out, and the outcome of each segment is reported.

    report           receipts and the report, for people and as JSON; segments left to an operator
    partition_run    one partition's copies: which may begin, be finished, must be ended
    publishing       events published, and every way in which that can fail
    protocols        what carrying out a plan needs outside the driver
    execution        waves of copies: started, copied, finished
    request          a copy job as it is asked for
    wiring           the parts of a job, opened together and closed in order
    job_lease        heartbeats, claims, records, and signals to stop
    planning         a plan from the state of source, cluster, metadata and store
    job_actions      events, tasks and objects of a real job
    job              the whole, from a request to a report

Invariants:
- A copy is finished only after its objects were verified, and after the copies below it. Where no
  broker looks at them, many small copies are finished together, in rising order: one of these that
  fails is left to a later job, and those behind it are finished all the same.
- A job publishes only while it holds the topic.
- A segment that fails stops its partition, and no other one.
- Copies left open are named; a later job goes on with them or ends them, as the evidence says.

May be imported by `rlmm.cli`, `spark_tiering.adopt`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
