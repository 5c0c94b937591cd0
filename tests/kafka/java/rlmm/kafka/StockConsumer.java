package rlmm.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumer: what it is given of one topic, as JSON on standard output.
 *
 * <p>Arguments are the address of a broker, the topic, the isolation level, and one question each:
 * {"read": partition, "first": offset}, {"time": timestamp, "partition": partition} or
 * {"bounds": partition}. Each is answered by one line, in their order; bytes are in base 64. What
 * is not answered in a minute ends the program.
 */
public final class StockConsumer {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(500);
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final String topic;

    private StockConsumer(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        this.consumer = consumer;
        this.topic = topic;
    }

    public static void main(String[] args) throws IOException {
        Map<String, Object> settings = Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, args[0],
                ConsumerConfig.ISOLATION_LEVEL_CONFIG, args[2],
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none",
                ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false",
                // One question's last fetch, at the end of the log, holds up the next question's.
                ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, "20",
                ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, (int) DEADLINE.toMillis());
        var bytes = new ByteArrayDeserializer();
        try (var client = new KafkaConsumer<>(settings, bytes, bytes)) {
            var asked = new StockConsumer(client, args[1]);
            for (String question : List.of(args).subList(3, args.length)) {
                System.out.println(JSON.writeValueAsString(asked.answer(JSON.readTree(question))));
            }
        }
    }

    private JsonNode answer(JsonNode question) {
        if (question.has("read")) {
            return read(partition(question.get("read")), question.get("first").asLong());
        }
        if (question.has("time")) {
            return offsetAt(partition(question.get("partition")), question.get("time").asLong());
        }
        return bounds(partition(question.get("bounds")));
    }

    private TopicPartition partition(JsonNode number) {
        return new TopicPartition(topic, number.asInt());
    }

    /** Everything from an offset on to the present end, for this isolation level. */
    private ArrayNode read(TopicPartition from, long first) {
        List<TopicPartition> alone = List.of(from);
        consumer.assign(alone);
        consumer.seek(from, first);
        long end = consumer.endOffsets(alone).get(from);
        long deadlineNs = System.nanoTime() + DEADLINE.toNanos();
        ArrayNode found = JSON.createArrayNode();
        while (consumer.position(from) < end) {
            consumer.poll(POLL).records(from).forEach(record -> found.add(form(record)));
            if (System.nanoTime() > deadlineNs) {
                throw new IllegalStateException(from + " was read to " + consumer.position(from));
            }
        }
        return found;
    }

    private static ArrayNode form(ConsumerRecord<byte[], byte[]> record) {
        ArrayNode headers = JSON.createArrayNode();
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(header.value());
        }
        return JSON.createArrayNode()
                .add(record.partition())
                .add(record.offset())
                .add(record.timestamp())
                .add(record.key())
                .add(record.value())
                .add(headers);
    }

    /** The offset for a time; null where no record is so late. */
    private JsonNode offsetAt(TopicPartition where, long timestamp) {
        OffsetAndTimestamp told = consumer.offsetsForTimes(Map.of(where, timestamp)).get(where);
        return told == null ? JSON.nullNode() : JSON.getNodeFactory().numberNode(told.offset());
    }

    private ObjectNode bounds(TopicPartition where) {
        List<TopicPartition> alone = List.of(where);
        return JSON.createObjectNode()
                .put("first", consumer.beginningOffsets(alone).get(where))
                .put("end", consumer.endOffsets(alone).get(where));
    }
}
