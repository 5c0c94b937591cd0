"""
An unmodified Kafka broker, fetched by Maven and run in a folder of its own.

Nothing imports it.

- `broker_world`: The world with a broker that loads our plugins.
- `clients`: An ordinary client of the broker.
- `jars`: Kafka's jars and our plugins, made once and kept in a cache.
- `process`: One broker: configured, started, stopped; and Kafka's own commands.
"""
