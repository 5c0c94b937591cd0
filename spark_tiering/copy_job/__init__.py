"""
A copy job: what is planned is carried out, and what became of each segment is told.

    with open_surroundings(request) as at:
        plan = make_job_plan(at).plan           # reads, and changes nothing
        report = run_job(at, plan)

By module, bottom up:

    receipts         what became of a segment, as values
    partition_run    one partition's copies on their way: what may begin, be finished, must be ended
    stop_signals     a file or a marker in the store that asks a job to stop between segments
    publishing       events published, and every way in which that can fail
    protocols        what carrying out a plan reaches outside with
    execution        waves of copies: started, copied, finished
    source_problems  what is not copied until somebody has looked at it
    report           what became of everything, for people and as JSON
    request          what is asked of a job
    wiring           what a job works with, opened together and closed in order
    job_lease        a job while it is alive: beats, claims, records
    current_state    one look at source, cluster and metadata
    job_actions      the hands of a real job
    planning         a plan from what the source, the metadata and the store say now
    job              the whole, from a request to a report

Invariants:

- Nothing is finished whose objects were not verified, and nothing before what lies below it. Where
  no broker looks at them, many small copies are said to be finished together, in rising order: one
  of these that fails is left to a later job, and those behind it are finished all the same.
- An event is published only while the job holds its topic; who lost it publishes nothing more.
- A segment's trouble stops its partition, never another one.
- What is left open is named, and a later job goes on with it or ends it, as the evidence says.

May be imported by `rlmm.cli`, `spark_tiering.adopt`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
