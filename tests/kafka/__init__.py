"""A real Apache Kafka for tests, independent of rlmm's use of a broker; see `fixtures`."""
