"""Jobs that copy cold segments, started by a company's own scheduler (`docs/spark.md`)."""
