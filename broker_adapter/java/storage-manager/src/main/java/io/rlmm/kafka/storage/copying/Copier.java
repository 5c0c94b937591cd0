package io.rlmm.kafka.storage.copying;

import io.rlmm.kafka.storage.layout.ChunkIndex;
import io.rlmm.kafka.storage.layout.CustomFields;
import io.rlmm.kafka.storage.layout.IndexPlaces;
import io.rlmm.kafka.storage.layout.LayoutException;
import io.rlmm.kafka.storage.layout.Manifest;
import io.rlmm.kafka.storage.layout.ObjectKeys;
import io.rlmm.kafka.storage.objects.ObjectStore;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes a segment: log, indexes, and last the manifest, whose presence says that the others are
 * whole. When anything fails before that, nothing of it stays.
 */
public final class Copier {
    private static final Logger LOG = LoggerFactory.getLogger(Copier.class);
    private static final int PIECE_BYTES = 256 * 1024;

    /**
     * How segments are written.
     *
     * @param isSparing whether logs that producers compressed are stored as they are
     * @param customFields what the broker keeps of each
     * @param customBytesMax what it takes at most; more would end the copying of a partition
     */
    public record Style(
            int chunkBytes, boolean isCompressed, boolean isSparing, Set<String> customFields, int customBytesMax) { }

    private final ObjectStore store;
    private final Style style;

    /** Copies into that store. */
    public Copier(ObjectStore store, Style style) {
        this.store = store;
        this.style = style;
    }

    /**
     * What the broker shall keep of it; empty for nothing.
     *
     * @param isWanted asked last: whether the caller still waits for the copy
     */
    public byte[] copy(
            ObjectKeys keys, RemoteLogSegmentMetadata segment, LogSegmentData data, BooleanSupplier isWanted)
            throws IOException, LayoutException {
        try {
            long bytes = write(keys, segment, data);
            if (!isWanted.getAsBoolean()) {
                throw new InterruptedIOException(keys.main() + ": the copy was interrupted");
            }
            return custom(keys, bytes);
        } catch (IOException | LayoutException | RuntimeException | Error error) {
            try {
                cleanUp(() -> store.delete(keys.all()));
            } catch (IOException | RuntimeException second) {
                error.addSuppressed(second);
                // Its trace is the broker's to log, with that of the copy: an outage says this at each attempt.
                LOG.warn("Objects of an unfinished copy may have stayed: {}: {}", keys.main(), second.getMessage());
            }
            throw error;
        }
    }

    /** Takes away what a failure has left. */
    private interface Cleaning {
        void run() throws IOException;
    }

    /**
     * An interrupt has done its work when a copy has failed, and the requests that clean up must not meet
     * it: neither an earlier one, nor one that comes only now, from a leaving caller or the end of all.
     * It stays set for the owner of the thread.
     */
    private static void cleanUp(Cleaning cleaning) throws IOException {
        boolean wasInterrupted = Thread.interrupted();
        try {
            cleaning.run();
        } catch (InterruptedIOException error) {
            wasInterrupted = true;
            Thread.interrupted();
            cleaning.run();
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private byte[] custom(ObjectKeys keys, long bytes) {
        byte[] wanted = CustomFields.of(style.customFields(), bytes, keys).bytes();
        if (wanted.length <= style.customBytesMax()) {
            return wanted;
        }
        LOG.warn("Custom metadata of {} bytes is more than a broker takes: prefix and key of {} are left out",
            wanted.length, keys.main());
        return style.customFields().contains(CustomFields.SIZE)
            ? CustomFields.of(Set.of(CustomFields.SIZE), bytes, keys).bytes() : new byte[0];
    }

    private long write(ObjectKeys keys, RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws IOException, LayoutException {
        Path log = data.logSegment();
        long size = Files.size(log);
        if (size != segment.segmentSizeInBytes()) {
            throw new LayoutException(log + ": " + size + " bytes, its metadata says " + segment.segmentSizeInBytes());
        }
        boolean isCompressed = style.isCompressed() && size > 0
            && !(style.isSparing() && LogObject.isCompressedAlready(log));
        ChunkIndex[] chunks = new ChunkIndex[1];
        put(keys.log(), size, sink -> chunks[0] = LogObject.write(
            log, (int) size, style.chunkBytes(), isCompressed, sink));
        Map<IndexType, Long> sizes = sizes(data);
        IndexPlaces places = IndexPlaces.of(sizes);
        put(keys.indexes(), places.storedBytes(), sink -> {
            for (IndexType type : IndexPlaces.ORDER) {
                if (sizes.containsKey(type)) {
                    try (InputStream from = open(data, type)) {
                        pass(from, sizes.get(type), sink, type);
                    }
                }
            }
        });
        byte[] manifest = new Manifest(chunks[0], places, isCompressed, null).bytes(segment);
        put(keys.manifest(), manifest.length, sink -> sink.write(manifest, 0, manifest.length));
        return chunks[0].storedBytes() + places.storedBytes() + manifest.length;
    }

    /** Writes into an object. */
    private interface Writing {
        void into(ObjectStore.Sink sink) throws IOException, LayoutException;
    }

    private void put(String key, long bytesMax, Writing writing) throws IOException, LayoutException {
        if (Thread.currentThread().isInterrupted()) {
            throw new InterruptedIOException(key + ": the copy was interrupted");
        }
        ObjectStore.Sink sink = store.create(key, bytesMax);
        try {
            writing.into(sink);
            sink.finish();
        } catch (IOException | LayoutException | RuntimeException | Error error) {
            try {
                cleanUp(sink::abandon);
            } catch (IOException | RuntimeException second) {
                error.addSuppressed(second);
                LOG.warn("An upload in parts may have stayed open: {}", key, second);
            }
            throw error;
        }
    }

    private static Map<IndexType, Long> sizes(LogSegmentData data) throws IOException, LayoutException {
        Map<IndexType, Long> sizes = new EnumMap<>(IndexType.class);
        sizes.put(IndexType.OFFSET, Files.size(data.offsetIndex()));
        sizes.put(IndexType.TIMESTAMP, Files.size(data.timeIndex()));
        if (data.producerSnapshotIndex() == null || data.leaderEpochIndex() == null) {
            throw new LayoutException("no producer snapshot or no leader epochs: a segment cannot be tiered without");
        }
        sizes.put(IndexType.PRODUCER_SNAPSHOT, Files.size(data.producerSnapshotIndex()));
        sizes.put(IndexType.LEADER_EPOCH, (long) data.leaderEpochIndex().remaining());
        if (data.transactionIndex().isPresent()) {
            sizes.put(IndexType.TRANSACTION, Files.size(data.transactionIndex().get()));
        }
        return sizes;
    }

    private static InputStream open(LogSegmentData data, IndexType type) throws IOException {
        return switch (type) {
            case OFFSET -> Files.newInputStream(data.offsetIndex());
            case TIMESTAMP -> Files.newInputStream(data.timeIndex());
            case PRODUCER_SNAPSHOT -> Files.newInputStream(data.producerSnapshotIndex());
            case LEADER_EPOCH -> bytes(data.leaderEpochIndex());
            case TRANSACTION -> Files.newInputStream(data.transactionIndex().orElseThrow());
        };
    }

    /** The broker's buffer keeps its position. */
    private static InputStream bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return new ByteArrayInputStream(bytes);
    }

    private static void pass(InputStream from, long size, ObjectStore.Sink sink, IndexType type)
            throws IOException, LayoutException {
        byte[] piece = new byte[(int) Math.min(PIECE_BYTES, size + 1)];
        long left = size;
        for (int some = from.read(piece); some > 0; some = from.read(piece)) {
            left -= some;
            if (left < 0) {
                break;
            }
            sink.write(piece, 0, some);
        }
        if (left != 0) {
            throw new LayoutException(type + ": it is not of the " + size + " bytes that were told");
        }
    }
}
