"""
The registry of jobs, kept in the object store itself: it needs no other place, and every process
with access to the store sees all jobs.

    <prefix>rlmm-jobs/jobs/<job id>/plan.json               written before the first event
    <prefix>rlmm-jobs/jobs/<job id>/beats/<number>.json     that the job is alive, or has ended
    <prefix>rlmm-jobs/jobs/<job id>/receipts/<number>.jsonl, report.json, pause
    <prefix>rlmm-jobs/claims/<topic>-<topic id>/<generation>.json    {"jobId"}

    ids                 job ids, which sort by time
    job_store           names of objects, and objects written once
    heartbeats          beats of jobs, the status of a job by them, and the end of an overdue job
    heartbeat_thread    the beats of this process's own job
    claims              the job that has a topic
    lease               a running job: its heartbeat, and the topics that it has claimed
    records             plan, receipts, report and the mark that asks a job to stop
    job_list            all jobs, with their status
    open_copy_evidence  the writers of open copies

How a job is fenced. A job's beats are numbered without a gap, and each is an object that is written
on the condition that its key is free. A job that wants a topic of a job with overdue beats writes
that job's next beat for it, which says that it has ended. Either that beat is written, and then the
fenced job finds its next number taken and knows that it is over, whatever its clock says; or the
job has beaten meanwhile, and keeps its topics.

Invariants:
- A topic's claim of the highest generation counts, and no job claims above one whose job has not
  ended. So `check` says yes to at most one of all jobs.
- Clocks decide when a job may be ended, never whether it has ended.
- Nothing is removed but beats of one's own that a later one has replaced.
- An object that cannot be read is taken for one of a job that is alive.

All this stands on the condition of puts. At an endpoint that ignores it two jobs that begin at the
same moment may both claim a topic: the probe names such endpoints.

May be imported by `rlmm.cli`, `spark_tiering.adopt`, `spark_tiering.copy_job`,
`spark_tiering.maintenance`, `spark_tiering.store_listing`.
"""
