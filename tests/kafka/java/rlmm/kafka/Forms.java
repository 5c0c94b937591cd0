package rlmm.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;

/** Kafka's metadata classes to JSON and back, in the form of the conformance corpus. */
final class Forms {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private Forms() {}

    static TopicIdPartition partition(JsonNode form) {
        return new TopicIdPartition(
                uuid(form.get("topic_id")),
                form.get("partition").asInt(),
                form.get("topic").asText());
    }

    static RemoteLogSegmentMetadata segment(JsonNode form) {
        Map<Integer, Long> epochs = new TreeMap<>();
        form.get("epochs").properties().forEach(
                entry -> epochs.put(Integer.valueOf(entry.getKey()), entry.getValue().asLong()));
        return new RemoteLogSegmentMetadata(
                id(form),
                form.get("start").asLong(),
                form.get("end").asLong(),
                form.get("max_ts").asLong(),
                form.get("broker").asInt(),
                form.get("event_ts").asLong(),
                form.get("size").asInt(),
                custom(form),
                RemoteLogSegmentState.valueOf(form.get("state").asText()),
                epochs,
                form.get("txn_empty").asBoolean());
    }

    static RemoteLogSegmentMetadataUpdate update(JsonNode form) {
        return new RemoteLogSegmentMetadataUpdate(
                id(form),
                form.get("event_ts").asLong(),
                custom(form),
                RemoteLogSegmentState.valueOf(form.get("state").asText()),
                form.get("broker").asInt());
    }

    static RemotePartitionDeleteMetadata partitionDelete(JsonNode form) {
        return new RemotePartitionDeleteMetadata(
                partition(form),
                RemotePartitionDeleteState.valueOf(form.get("state").asText()),
                form.get("event_ts").asLong(),
                form.get("broker").asInt());
    }

    static ObjectNode form(RemoteLogSegmentMetadata segment) {
        TopicIdPartition partition = segment.topicIdPartition();
        ObjectNode form = JSON.createObjectNode()
                .put("kind", "segment")
                .put("topic", partition.topic())
                .put("topic_id", hex(partition.topicId()))
                .put("partition", partition.partition())
                .put("segment_id", hex(segment.remoteLogSegmentId().id()))
                .put("start", segment.startOffset())
                .put("end", segment.endOffset())
                .put("broker", segment.brokerId())
                .put("max_ts", segment.maxTimestampMs())
                .put("event_ts", segment.eventTimestampMs())
                .put("size", segment.segmentSizeInBytes())
                .put("custom", segment.customMetadata()
                        .map(custom -> HEX.formatHex(custom.value())).orElse(null))
                .put("state", segment.state().name())
                .put("txn_empty", segment.isTxnIdxEmpty());
        ObjectNode epochs = form.putObject("epochs");
        segment.segmentLeaderEpochs().forEach(
                (epoch, offset) -> epochs.put(epoch.toString(), offset));
        return form;
    }

    private static RemoteLogSegmentId id(JsonNode form) {
        return new RemoteLogSegmentId(partition(form), uuid(form.get("segment_id")));
    }

    private static Optional<CustomMetadata> custom(JsonNode form) {
        JsonNode text = form.get("custom");
        return text.isNull()
                ? Optional.empty()
                : Optional.of(new CustomMetadata(HEX.parseHex(text.asText())));
    }

    private static Uuid uuid(JsonNode text) {
        ByteBuffer bytes = ByteBuffer.wrap(HEX.parseHex(text.asText()));
        return new Uuid(bytes.getLong(), bytes.getLong());
    }

    private static String hex(Uuid uuid) {
        return HEX.toHexDigits(uuid.getMostSignificantBits())
                + HEX.toHexDigits(uuid.getLeastSignificantBits());
    }
}
