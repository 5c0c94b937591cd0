"""
Where units of work are run: in this process, or on Spark.

    with open_engine(EngineSettings(master="local[4]")) as engine:
        outcomes = engine.run_units(units, fn, on_result)      # a result or a UnitLost for each

By module, bottom up:

    protocol        what every engine does; what comes back for a unit from which nothing came back
    settings        everything that can be said of an engine
    in_process      here, without Spark
    task_entry      one unit inside a task, and how it travels there and back
    unit_results    what came back, each unit once
    durations       as Spark's settings say them
    failure_causes  why a job of Spark's failed, in one line
    spark_engine    units as jobs of Spark's: what came back, what is tried again, cancelling
    rdd             the jobs as RDDs
    arrow           the jobs by mapInArrow, which works on Spark Connect as well
    java            the Java that Spark is started with
    session         a session of Spark's, made or found
    opening         from settings to an engine

Invariants:

- Each unit is a task of its own, and has one outcome: the first one that is heard.
- A unit's failure is its own: the others are run.
- Nothing runs on when a call has returned or raised. Only an executor that Spark itself has lost
  sight of may: that is why work has to bear being done twice.
- What Spark was told by whoever started it is never overridden.

May be imported by `rlmm.cli`, `rlmm_demo`, `spark_tiering.copy_job`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
