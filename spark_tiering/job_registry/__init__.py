"""
Who works on what, kept in the store of objects itself: no other place is needed for it, and whoever
may copy may also see who does.

    <prefix>rlmm-jobs/jobs/<job id>/plan.json               written before the first event
    <prefix>rlmm-jobs/jobs/<job id>/beats/<number>.json     that the job is alive, or has ended
    <prefix>rlmm-jobs/jobs/<job id>/receipts/<number>.jsonl, report.json, pause
    <prefix>rlmm-jobs/claims/<topic>-<topic id>/<generation>.json    {"jobId"}

    with Heart(JobStore(own_store, prefix), job_id) as heart:
        claims = Claims(JobStore(store, prefix), heart)
        outcome = claims.acquire(topics)        # `Claimed`, or `Busy` and with whom
        ...
        if claims.check(topic): ...             # before each event that finishes a copy

By module, bottom up:

    ids                 job ids, which sort by time
    job_store           names of objects, and objects written once
    heartbeats          that a job is alive, how a job stands by its beats, ending an overdue one
    heartbeat_thread    the beats of this process's own job
    claims              which job has a topic
    lease               a job that is alive: its heartbeat, and the topics that it has claimed
    records             plan, receipts, report and the mark that asks a job to stop
    job_list            all jobs, and how each stands
    open_copy_evidence  who started the copies that are open

How a job is shut out. A job's beats are numbered without a gap, and each is an object that is
written on the condition that its key is free. Whoever wants a topic of a job whose beats are
overdue writes that job's next beat for it, which says that it has ended. Either that beat is
written, and then the job, whatever its clock says and however long it was paused, finds its next
number taken and knows that it is over; or the job has beaten meanwhile, and keeps its topics.

Invariants:

- A topic's claim of the highest generation counts, and nobody claims above one whose job has not
  ended. So of all jobs at most one is told by `check` that it has a topic.
- Clocks decide when a job may be ended, never whether it has ended.
- Nothing is removed but beats of one's own that a later one has replaced.
- What cannot be read is taken for somebody's who is alive.

All this stands on the condition of puts. At an endpoint that ignores it two jobs that begin at the
same moment may both be told that they have a topic: such endpoints are named when they are probed.

May be imported by `rlmm.cli`, `spark_tiering.adopt`, `spark_tiering.copy_job`,
`spark_tiering.maintenance`, `spark_tiering.store_listing`.
"""
