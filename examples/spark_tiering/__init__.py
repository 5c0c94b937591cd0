"""
Jobs that copy cold segments, started by a company's own scheduler.

`submit` is the program that spark-submit is given, `airflow_dag` a schedule for Airflow, and
`cronjob.yaml` one for Kubernetes. `docs/spark.md` describes the commands.
"""
