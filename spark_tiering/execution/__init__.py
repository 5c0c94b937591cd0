"""
Engines that run units of work: in this process, or on Spark.

    protocol        the protocol of engines; the value for a unit without a result
    settings        settings of an engine
    in_process      units in this process, without Spark
    task_entry      one unit inside a task, and its way there and back
    failure_causes  the cause of a failed Spark job, in one line
    spark_engine    units as Spark jobs: results, repeats, cancelling
    rdd             the jobs as RDDs
    arrow           the jobs by mapInArrow, which works on Spark Connect as well
    java            the Java that Spark is started with
    session         a Spark session, made or found
    opening         from settings to an engine

Invariants:
- Each unit is a task of its own, and has one outcome: the first one that arrives.
- A unit's failure is its own: the others are run.
- Nothing runs on when a call has returned or raised. Only an executor that Spark itself has lost
  may: so each unit must be safe to run twice.
- The engine never overrides settings of a running Spark.

May be imported by `rlmm.cli`, `rlmm_demo`, `spark_tiering.copy_job`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
