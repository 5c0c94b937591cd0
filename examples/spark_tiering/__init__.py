"""
Jobs that copy cold segments, started by what a company has for that.

`submit` is the program that spark-submit is given, `airflow_dag` a schedule for Airflow, and
`cronjob.yaml` one for Kubernetes. What the commands do is said in `docs/spark.md`.
"""
