"""
Every setting of the service, its default and its reason; its places and its types.

Others call `loading.load`. Sections are plain frozen values of the packages that they
configure; pydantic knows of them only in `merging`, and nothing here touches a network.

May be imported by `rlmm.cli`, `rlmm.process`, `rlmm.state_sources`,
`spark_tiering.segment_sources`, `spark_tiering.tier_metadata`.

- `building`: Typed values become sections.
- `client_settings`: The settings of a cluster's client, read from the files of Java's own tools.
- `inheritance`: The values that one of several clusters inherits from the common layers of a
  configuration.
- `jaas`: The line of `sasl.jaas.config`.
- `java_files`: A Java `client.properties` and a broker's `server.properties`, as they are.
- `kafka_names`: Kafka's own keys, as its Java tools and brokers spell them, and what they are
  here.
- `keys`: Every key that can be set, read from the sections.
- `layers`: The layers of a configuration.
- `process`: Settings of the process as a whole, and why the defaults are these.
- `sections`: All sections of the configuration.
"""
