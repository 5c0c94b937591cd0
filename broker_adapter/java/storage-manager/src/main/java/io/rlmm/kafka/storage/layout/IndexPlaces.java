package io.rlmm.kafka.storage.layout;

import java.util.EnumMap;
import java.util.Map;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Where each index lies in the object of indexes: one after another, in one order, and whole.
 *
 * @param places of all that the segment has; only the transaction index may be absent
 */
public record IndexPlaces(Map<IndexType, Place> places) {

    /** Where one lies. */
    public record Place(int position, int size) {
        /** The first byte behind it. */
        public int next() {
            return position + size;
        }

        String json() {
            return "{\"position\":" + position + ",\"size\":" + size + "}";
        }
    }

    /** In the order in which they are stored. */
    public static final IndexType[] ORDER = {
        IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.PRODUCER_SNAPSHOT, IndexType.LEADER_EPOCH,
        IndexType.TRANSACTION,
    };

    /** Places for indexes of these sizes. */
    public static IndexPlaces of(Map<IndexType, Long> sizes) throws LayoutException {
        Map<IndexType, Place> places = new EnumMap<>(IndexType.class);
        long position = 0;
        for (IndexType type : ORDER) {
            Long size = sizes.get(type);
            if (size == null) {
                if (type != IndexType.TRANSACTION) {
                    throw new LayoutException("no " + type + ": a segment cannot be tiered without it");
                }
                continue;
            }
            if (position + size > Integer.MAX_VALUE) {
                throw new LayoutException("indexes of more than " + Integer.MAX_VALUE + " bytes");
            }
            places.put(type, new Place((int) position, size.intValue()));
            position += size;
        }
        return new IndexPlaces(places);
    }

    /** Null where the segment does not have it. */
    public Place place(IndexType type) {
        return places.get(type);
    }

    /** Length of the object. */
    public int storedBytes() {
        return places.values().stream().mapToInt(Place::next).max().orElse(0);
    }

    static String name(IndexType type) {
        return switch (type) {
            case OFFSET -> "offset";
            case TIMESTAMP -> "timestamp";
            case PRODUCER_SNAPSHOT -> "producerSnapshot";
            case LEADER_EPOCH -> "leaderEpoch";
            case TRANSACTION -> "transaction";
        };
    }
}
