"""
Record values of the metadata topic, record batches, histories of events.

    golden                 record values that Kafka wrote, with the events they hold
    value_bytes            record values put together field by field
    batches                record batches with any field wrong and a valid CRC
    hostile_sets           record sets whose few bytes stand for much work
    record_sets            record sets for shards: short lives, markers, holes, damage
    odd_record_sets        record sets at random: transactions, holes, codecs, damage
    mutations              bytes changed as a bad disk or a bad peer changes them
    strategies             strategies of hypothesis: events, histories, damaged values
    histories              random histories over few ids, epochs and offsets
    rival_histories        random histories of one partition that several brokers copy at once
    console_text           events as Kafka's own tools print them
    kafka_cache_model      the literal model of Kafka's cache, fed with events
    kafka_retention_model  Kafka's retention of a tiered partition, step by step
"""
