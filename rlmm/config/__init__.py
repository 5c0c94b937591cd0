"""
Configuration of the service: every setting with its default, reason, source and type.

May be imported by `rlmm.cli`, `rlmm.process`, `rlmm.state_sources`,
`spark_tiering.segment_sources`, `spark_tiering.tier_metadata`.

- `building`: Typed values become sections.
- `client_settings`: The settings of a cluster's client, read from the files of Java's own tools.
- `java_files`: A Java `client.properties` and a broker's `server.properties`, as they are.
- `kafka_names`: Kafka's own keys, as its Java tools and brokers spell them, and our own.
- `key_table`: Every key that can be set, read from the sections.
- `layers`: The layers of a configuration.
- `loading`: Loads the configuration from all sources, also for each of several clusters.
- `merging`: Merges layers into typed values.
- `process`: Settings of the process as a whole, and why the defaults are these.
- `sections`: All sections of the configuration.
"""
