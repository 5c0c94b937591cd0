"""
An unmodified Kafka broker for the demonstration, fetched by Maven and run in a folder of its own.

    jars     Kafka's jars and our plugins, fetched and built once, kept in a cache
    process  one broker: written, started, stopped
    tools    Kafka's own commands, and its settings changed as an operator changes them

Nothing imports it.

- `broker_world`: The demonstration's world with a real, unmodified Kafka broker that loads our
  plugins.
- `clients`: An ordinary client of the demonstration's broker.

Nothing imports it.
"""
