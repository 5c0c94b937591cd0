"""
Jobs over the tier: copy, verify, audit, expire, adopt, rebuild, read plans.

    job_folders         a broker's log folder, a metadata log and a store in one scratch folder
    verified_tiers      a copied tier, damaged on purpose in one object
    copy_plans          inputs of copy plans, with defaults
    copy_tasks          copy tasks, and the objects in a store after one
    jobs                jobs over one store, each with a clock of its own
    job_parts           the parts of a job in memory
    driver_process      drivers of copy jobs that are killed at a given point
    simulated_jobs      a metadata log, a store and a source in memory, and drivers that die
    simulated_adoption  a topic that a broker tiers, in memory, while a job adopts it
    adopted_broker      a real broker that copies less than is written
    simulated_expiry    the lives of segments in an embedded log
    audited_tiers       a tier in memory that is audited
    audit_process       an audit in a process of its own, whose memory is measured
    large_tiers         a tier of any number of segments with faults in known places
    large_copy_process  a process that copies a segment of any size and prints its memory
    lost_tiers          a store beside a lost metadata log, and all answers of a log
    metadata_accesses   every way of a job to the metadata
    read_plans          partitions for read plans, and a naive reader of them
"""
