"""
Kafka in this process: brokers, topics, settings.

    fake_kafka        a cluster of brokers and one topic, as far as the `kafka` log needs them
    fake_connections  connections to that cluster
    fake_topics       topics of users in that cluster: leaders, offsets, settings
    fake_cluster      a cluster whose topics, brokers and settings a test gives
    cut_log           services on a topic that an unclean election cuts, and their true answers
    kafka_logs        settings and topics for a `kafka` log on a real broker
    kafka_sources     the topic of a fake cluster as a source of the tiered state
"""
