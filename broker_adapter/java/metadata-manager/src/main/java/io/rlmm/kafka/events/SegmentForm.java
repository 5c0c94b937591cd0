package io.rlmm.kafka.events;

import io.rlmm.kafka.wire.Forms;
import io.rlmm.kafka.wire.MalformedException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

/** Segments and their parts, to the forms of the protocol and back. */
public final class SegmentForm {
    private static final int PARTS = 11;

    private SegmentForm() { }

    /** A user partition. */
    public static List<Object> partition(TopicIdPartition partition) {
        return Arrays.asList(uuid(partition.topicId()), partition.topic(), partition.partition());
    }

    /** The sixteen bytes of an id. */
    public static byte[] uuid(Uuid id) {
        return ByteBuffer.allocate(16)
            .putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits())
            .array();
    }

    /** What a storage plugin noted down with a segment, or null; empty is not absent. */
    public static byte[] custom(Optional<CustomMetadata> custom) {
        return custom.map(CustomMetadata::value).orElse(null);
    }

    /** A segment, without its partition. */
    public static List<Object> value(RemoteLogSegmentMetadata segment) {
        List<Object> epochs = new ArrayList<>();
        segment.segmentLeaderEpochs().forEach((epoch, offset) -> epochs.add(List.of(epoch, offset)));
        return Arrays.asList(
            uuid(segment.remoteLogSegmentId().id()),
            segment.startOffset(),
            segment.endOffset(),
            segment.brokerId(),
            segment.maxTimestampMs(),
            segment.eventTimestampMs(),
            epochs,
            segment.segmentSizeInBytes(),
            custom(segment.customMetadata()),
            (int) segment.state().id(),
            TxnFlag.of(segment));
    }

    /** The segment of <code>partition</code> that <code>value</code> says. */
    public static RemoteLogSegmentMetadata read(TopicIdPartition partition, Object value) throws MalformedException {
        List<?> said = Forms.array(value, PARTS, "a segment");
        Map<Integer, Long> epochs = new TreeMap<>();
        for (Object one : Forms.array(said.get(6), "leader epochs")) {
            List<?> epoch = Forms.array(one, 2, "a leader epoch");
            epochs.put(Forms.int32(epoch.get(0), "a leader epoch"), Forms.int64(epoch.get(1), "its first offset"));
        }
        ByteBuffer id = ByteBuffer.wrap(Forms.uuid(said.get(0), "a segment id"));
        byte[] custom = Forms.bytesOrNull(said.get(8), "custom metadata");
        try {
            return TxnFlag.segment(
                new RemoteLogSegmentId(partition, new Uuid(id.getLong(), id.getLong())),
                Forms.uint63(said.get(1), "a start offset"),
                Forms.uint63(said.get(2), "a last offset"),
                Forms.int64(said.get(4), "a max timestamp"),
                Forms.int32(said.get(3), "a broker id"),
                Forms.int64(said.get(5), "an event timestamp"),
                Forms.int32(said.get(7), "a size"),
                Optional.ofNullable(custom).map(CustomMetadata::new),
                state(said.get(9)),
                epochs,
                Forms.flag(said.get(10), "whether a transaction index is empty"));
        } catch (IllegalArgumentException error) {
            throw new MalformedException("a segment that there cannot be: " + error.getMessage());
        }
    }

    /** The same where there may be none. */
    public static Optional<RemoteLogSegmentMetadata> readOptional(TopicIdPartition partition, Object value)
            throws MalformedException {
        return value == null ? Optional.empty() : Optional.of(read(partition, value));
    }

    private static RemoteLogSegmentState state(Object value) throws MalformedException {
        int id = Forms.uint31(value, "a state");
        for (RemoteLogSegmentState state : RemoteLogSegmentState.values()) {
            if (state.id() == id) {
                return state;
            }
        }
        throw new MalformedException("there is no state " + id);
    }
}
