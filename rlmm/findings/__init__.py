"""
Findings: what a check reports, with stable codes; shared by commands and by jobs. Pure.

May be imported by `rlmm.cli`, `rlmm.inspection`, `spark_tiering.data_source`,
`spark_tiering.maintenance`, `spark_tiering.read_plan`, `spark_tiering.reporting`,
`spark_tiering.segment_reading`, `spark_tiering.tier_metadata`.

- `expire_findings`: Kinds of findings about segments that retention has given up.
- `finding`: A finding of a check.
- `tier_findings`: Kinds of findings about a tier.
"""
