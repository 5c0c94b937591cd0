"""
Every setting of the service, its default and its reason; where it stands, and what it is here.

`loading.load` is what others call. Sections are plain frozen values of the packages that they
configure; pydantic knows of them only in `merging`, and nothing here touches a network.

May be imported by `rlmm.cli`, `rlmm.process`, `rlmm.state_sources`,
`spark_tiering.segment_sources`, `spark_tiering.tier_metadata`.

- `building`: Typed values become sections.
- `client_settings`: How a client gets into a cluster, read from what Java's own tools are given.
- `inheritance`: What one of several clusters takes from the common layers of a configuration.
- `jaas`: The line of `sasl.jaas.config`.
- `java_files`: A Java `client.properties` and a broker's `server.properties`, as they are.
- `kafka_names`: Kafka's own keys, as its Java tools and brokers spell them, and what they are
  here.
- `keys`: Every key that can be set, read from the sections.
- `layers`: Where values stand.
- `process`: What can be chosen about the process as a whole, and why the defaults are these.
- `sections`: All that can be configured.
"""
