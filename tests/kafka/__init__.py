"""
A real Apache Kafka for tests: fetched, started, secured, tiered with, and stopped.

Tests use the fixtures of `fixtures`; nothing here depends on rlmm's use of a broker.
"""
