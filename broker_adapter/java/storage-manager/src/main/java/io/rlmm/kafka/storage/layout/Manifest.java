package io.rlmm.kafka.storage.layout;

import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * What a manifest says, but for the description of the segment, which is written for people and for
 * recovery and is not read. It is the last object that is written: where it is, the others are whole.
 *
 * @param seal what the parts are encrypted with, or null
 */
public record Manifest(ChunkIndex chunks, IndexPlaces indexes, boolean isCompressed, Seal seal) {
    /** Longer ones are not looked at: the longest list of chunks, and 1 MiB for all else. */
    public static final int BYTES_MAX = ChunkSizes.TEXT_CHARACTERS_MAX + 1024 * 1024;
    private static final Set<String> TOP = Set.of(
        "version", "chunkIndex", "segmentIndexes", "compression", "encryption", "remoteLogSegmentMetadata");
    private static final Set<String> FIXED = Set.of(
        "type", "originalChunkSize", "originalFileSize", "transformedChunkSize", "finalTransformedChunkSize");
    private static final Set<String> VARIABLE = Set.of(
        "type", "originalChunkSize", "originalFileSize", "transformedChunks");
    private static final Set<String> INDEXES = Set.of(
        "offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction");

    /** Reads what any writer of the layout writes, and refuses what other readers refuse. */
    public static Manifest parse(byte[] content) throws LayoutException {
        Fields fields = new Fields(Json.object(content, BYTES_MAX), "");
        Object version = fields.value("version");
        if (!"1".equals(version) && !Long.valueOf(1).equals(version)) {
            throw new LayoutException("version: " + Fields.shown(String.valueOf(version)) + ", only 1 is known");
        }
        fields.requireOnly(TOP);
        Seal seal = fields.has("encryption") ? seal(fields.object("encryption")) : null;
        boolean isCompressed = fields.flag("compression");
        ChunkIndex chunks = chunks(fields.object("chunkIndex"));
        if (!isCompressed && seal == null && !chunks.isPlain()) {
            throw new LayoutException("chunkIndex: " + chunks.originalBytes() + " bytes, stored as they are in "
                + chunks.storedBytes());
        }
        return new Manifest(chunks, indexes(fields.object("segmentIndexes")), isCompressed, seal);
    }

    private static Seal seal(Fields fields) throws LayoutException {
        fields.requireOnly(Set.of("dataKey", "aad"));
        return Seal.parse(fields.text("dataKey"), fields.bytes("aad"));
    }

    private static ChunkIndex chunks(Fields fields) throws LayoutException {
        String type = fields.text("type");
        boolean isFixed = type.equals("fixed");
        if (!isFixed && !type.equals("variable")) {
            throw fields.wrong("type", "fixed or variable");
        }
        fields.requireOnly(isFixed ? FIXED : VARIABLE);
        int chunkBytes = fields.number("originalChunkSize", 1);
        int originalBytes = fields.number("originalFileSize", 0);
        if (isFixed) {
            return ChunkIndex.fixed(chunkBytes, originalBytes, fields.number("transformedChunkSize", 0),
                fields.number("finalTransformedChunkSize", 0));
        }
        return ChunkIndex.variable(chunkBytes, originalBytes, ChunkSizes.parse(fields.text("transformedChunks")));
    }

    private static IndexPlaces indexes(Fields fields) throws LayoutException {
        fields.requireOnly(INDEXES);
        Map<IndexType, IndexPlaces.Place> places = new EnumMap<>(IndexType.class);
        for (IndexType type : IndexPlaces.ORDER) {
            String name = IndexPlaces.name(type);
            // The name must be there, even where there is no transaction index.
            if (type != IndexType.TRANSACTION || fields.value(name) != null) {
                Fields place = fields.object(name);
                place.requireOnly(Set.of("position", "size"));
                int position = place.number("position", 0);
                int size = place.number("size", 0);
                if ((long) position + size > Integer.MAX_VALUE) {
                    throw place.wrong("size", "at most " + (Integer.MAX_VALUE - position));
                }
                places.put(type, new IndexPlaces.Place(position, size));
            }
        }
        return new IndexPlaces(places);
    }

    /** The bytes of the object, with the description of its segment. */
    public byte[] bytes(RemoteLogSegmentMetadata segment) {
        if (seal != null) {
            throw new IllegalArgumentException("encrypted segments are read, and not written");
        }
        StringBuilder text = new StringBuilder(1024);
        text.append("{\"version\":\"1\",\"chunkIndex\":").append(chunks.json()).append(",\"segmentIndexes\":{");
        for (IndexType type : IndexPlaces.ORDER) {
            IndexPlaces.Place place = indexes.place(type);
            text.append(type == IndexPlaces.ORDER[0] ? "\"" : ",\"").append(IndexPlaces.name(type)).append("\":")
                .append(place == null ? "null" : place.json());
        }
        text.append("},\"compression\":").append(isCompressed).append(",\"remoteLogSegmentMetadata\":");
        return describe(text, segment).append("}").toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Names of topics and ids need no escape: a broker has none that would. */
    private static StringBuilder describe(StringBuilder text, RemoteLogSegmentMetadata segment) {
        TopicIdPartition partition = segment.remoteLogSegmentId().topicIdPartition();
        String epochs = new TreeMap<>(segment.segmentLeaderEpochs()).entrySet().stream()
            .map(one -> "\"" + one.getKey() + "\":" + one.getValue()).collect(Collectors.joining(","));
        return text.append("{\"remoteLogSegmentId\":{\"topicIdPartition\":{\"topicId\":\"")
            .append(partition.topicId()).append("\",\"topicPartition\":{\"topic\":\"").append(partition.topic())
            .append("\",\"partition\":").append(partition.partition()).append("}},\"id\":\"")
            .append(segment.remoteLogSegmentId().id()).append("\"},\"startOffset\":").append(segment.startOffset())
            .append(",\"endOffset\":").append(segment.endOffset()).append(",\"maxTimestampMs\":")
            .append(segment.maxTimestampMs()).append(",\"brokerId\":").append(segment.brokerId())
            .append(",\"eventTimestampMs\":").append(segment.eventTimestampMs())
            .append(",\"segmentLeaderEpochs\":{").append(epochs).append("}}");
    }
}
