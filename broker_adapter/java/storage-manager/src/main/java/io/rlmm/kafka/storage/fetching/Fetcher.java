package io.rlmm.kafka.storage.fetching;

import io.rlmm.kafka.storage.layout.Blocks;
import io.rlmm.kafka.storage.layout.IndexPlaces;
import io.rlmm.kafka.storage.layout.KeyRing;
import io.rlmm.kafka.storage.layout.LayoutException;
import io.rlmm.kafka.storage.layout.Manifest;
import io.rlmm.kafka.storage.layout.ObjectKeys;
import io.rlmm.kafka.storage.objects.ObjectAbsentException;
import io.rlmm.kafka.storage.objects.ObjectStore;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Reads segments: manifests, indexes and blocks of logs are each asked for once and kept, and of a
 * log that is read in order the next blocks are fetched ahead.
 *
 * <p>No caller waits longer for one of them than the broker waits for its fetch. A load goes on behind
 * that, until its own deadline, so that a slow store makes reading slow and does not end it.
 */
public final class Fetcher {
    private static final long MANIFESTS_BYTES = 16L * 1024 * 1024;
    /** Of a usual one. */
    private static final int MANIFEST_BYTES = 8 * 1024;
    /** Larger objects of indexes are asked for by the part. */
    private static final int WHOLE_INDEXES_BYTES = 2 * 1024 * 1024;

    /**
     * How much of everything there is.
     *
     * @param waitMs longest time that a caller waits for one block
     * @param failureMs shortest time until a caller gets a failure
     */
    public record Limits(
        int threads, long waitMs, long failureMs, long cacheBytes, long indexCacheBytes, long aheadBytes) { }

    private record BlockOf(String main, int block) { }

    private record PartOf(String main, int position, int size) { }

    private final ObjectStore store;
    private final KeyRing ring;
    private final Limits limits;
    private final Restraint restraint;
    private final Workers workers;
    private final LoadingCache<String, Segment> segments;
    private final LoadingCache<BlockOf, byte[]> blocks;
    private final LoadingCache<PartOf, byte[]> parts;

    /** Begins nothing. */
    public Fetcher(ObjectStore store, KeyRing ring, Limits limits) {
        this.store = store;
        this.ring = ring;
        this.limits = limits;
        this.restraint = new Restraint(limits.failureMs());
        this.workers = Workers.few("rlmm-storage-read", limits.threads());
        this.segments = new LoadingCache<>(MANIFESTS_BYTES, workers::execute, segment -> segment.blocks.weight());
        this.blocks = new LoadingCache<>(limits.cacheBytes(), workers::execute, block -> block.length);
        this.parts = new LoadingCache<>(limits.indexCacheBytes(), workers::execute, part -> part.length);
    }

    // -------------------------------------------------------------------------------------- logs

    /** A log from one byte to another, which may lie beyond its end. */
    public InputStream log(ObjectKeys keys, int start, int last) throws IOException, LayoutException {
        Segment segment = segment(keys);
        int size = segment.blocks.manifest().chunks().originalBytes();
        if (start >= size) {
            throw new LayoutException("byte " + start + " of a log of " + size + " bytes");
        }
        return new LogStream(this, segment, start, Math.min(last, size - 1));
    }

    private Segment segment(ObjectKeys keys) throws IOException, LayoutException {
        return wait(segments.get(keys.main(), MANIFEST_BYTES, () -> {
            String key = keys.manifest();
            try {
                Manifest manifest = Manifest.parse(store.readWhole(key, Manifest.BYTES_MAX));
                return new Segment(keys, Blocks.of(manifest, ring.cipher(manifest)));
            } catch (LayoutException error) {
                throw named(key, error);
            }
        }), keys.manifest());
    }

    /** A block of a log; the next ones are on their way when it comes. */
    byte[] block(Segment segment, int block) throws IOException, LayoutException {
        boolean isThere = blocks.has(new BlockOf(segment.keys.main(), block));
        Future<byte[]> wanted = load(segment, block);
        int before = segment.lastBlock;
        segment.lastBlock = block;
        if (before < 0 ? block != 0 : block != before && block != before + 1) {
            segment.fetchedTo = block;
        } else if (isThere || block > segment.fetchedTo) {
            segment.fetchedTo = ahead(segment, block);
        }
        // Else it was fetched and pushed out: with more readers than the cache has room for, all that is
        // fetched ahead is gone when it is asked for, and pushes out what others read.
        return wait(wanted, segment.keys.log());
    }

    private Future<byte[]> load(Segment segment, int block) {
        int size = segment.blocks.length(block);
        return blocks.get(new BlockOf(segment.keys.main(), block), size, () -> {
            String key = segment.keys.log();
            Blocks.Range range = segment.blocks.stored(block);
            try {
                return segment.blocks.content(block, store.read(key, range.start(), range.length()));
            } catch (LayoutException error) {
                throw named(key, error);
            }
        });
    }

    /** Up to which block all have been asked for; none is fetched ahead a second time. */
    private int ahead(Segment segment, int block) {
        // Blocks fetched ahead must not push out the blocks that are read.
        long bytes = Math.min(limits.aheadBytes(), limits.cacheBytes() / 4);
        long count = (bytes + segment.blocks.blockBytes() - 1) / segment.blocks.blockBytes();
        long last = Math.min(block + count, segment.blocks.count() - 1);
        int fetched = Math.max(block, segment.fetchedTo);
        while (fetched < last && !workers.isBusy()) {
            fetched++;
            if (!blocks.has(new BlockOf(segment.keys.main(), fetched))) {
                load(segment, fetched);
            }
        }
        return fetched;
    }

    // ----------------------------------------------------------------------------------- indexes

    /** An index, whole. */
    public InputStream index(ObjectKeys keys, IndexType type) throws IOException, LayoutException {
        Segment segment = segment(keys);
        IndexPlaces places = segment.blocks.manifest().indexes();
        IndexPlaces.Place place = places.place(type);
        if (place == null) {
            throw new ObjectAbsentException(type + " of " + keys.manifest(), null);
        }
        if (place.size() == 0) {
            return InputStream.nullInputStream();
        }
        boolean isWhole = places.storedBytes() <= WHOLE_INDEXES_BYTES;
        int from = isWhole ? 0 : place.position();
        int size = isWhole ? places.storedBytes() : place.size();
        byte[] stored = wait(parts.get(new PartOf(keys.main(), from, size), size, () -> {
            byte[] found = store.read(keys.indexes(), from, size);
            if (found.length != size) {
                throw new LayoutException(keys.indexes() + ": " + found.length + " bytes at " + from + ", expected "
                    + size);
            }
            return found;
        }), keys.indexes());
        try {
            return new ByteArrayInputStream(
                segment.blocks.index(stored, place.position() - from, place.size()));
        } catch (LayoutException error) {
            throw named(keys.indexes(), error);
        }
    }

    // ----------------------------------------------------------------------------------- the rest

    /** A deleted segment is not answered from memory. */
    public void forget(ObjectKeys keys) {
        String main = keys.main();
        segments.forgetIf(main::equals);
        blocks.forgetIf(one -> one.main().equals(main));
        parts.forgetIf(one -> one.main().equals(main));
    }

    private <T> T wait(Future<T> work, String what) throws IOException, LayoutException {
        long begunNs = System.nanoTime();
        try {
            return Waiting.forIt(work, limits.waitMs(), what);
        } catch (ExecutionException error) {
            restraint.hold(begunNs);
            Throwable cause = error.getCause();
            if (cause instanceof LayoutException told) {
                throw told;
            }
            if (cause instanceof IOException told) {
                throw told;
            }
            throw new IOException(what + ": " + cause, cause);
        }
    }

    private static LayoutException named(String key, LayoutException error) {
        String message = key + ": " + error.getMessage();
        return error instanceof io.rlmm.kafka.storage.layout.SealedException
            ? new io.rlmm.kafka.storage.layout.SealedException(message) : new LayoutException(message);
    }

    /** Its threads, for the caller that ends them. */
    public Workers workers() {
        return workers;
    }
}
