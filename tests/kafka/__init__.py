"""
A real Apache Kafka for tests: how it is fetched, started, secured, tiered with, and stopped.

Tests ask for the fixtures of `fixtures`; nothing here knows what rlmm does with a broker.
"""
