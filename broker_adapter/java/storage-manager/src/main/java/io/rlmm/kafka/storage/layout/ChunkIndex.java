package io.rlmm.kafka.storage.layout;

import java.util.List;

/**
 * Where each chunk of a log lies, before and after it was stored.
 */
public final class ChunkIndex {
    private final int chunkBytes;
    private final int originalBytes;
    private final int count;
    private final int storedChunkBytes;
    private final int lastStoredBytes;
    private final int[] sizes;
    private final int[] starts;

    private ChunkIndex(int chunkBytes, int originalBytes, int storedChunkBytes, int lastStoredBytes, int[] sizes)
            throws LayoutException {
        this.chunkBytes = chunkBytes;
        this.originalBytes = originalBytes;
        this.count = (int) (((long) originalBytes + chunkBytes - 1) / chunkBytes);
        this.storedChunkBytes = storedChunkBytes;
        this.lastStoredBytes = lastStoredBytes;
        this.sizes = sizes;
        this.starts = sizes == null ? null : starts(sizes);
        if (sizes != null && sizes.length != count) {
            throw new LayoutException("chunkIndex: " + sizes.length + " stored chunks, " + count + " of the log");
        }
        if (count > 0 && (long) (count - 1) * storedChunkBytes + lastStoredBytes > Integer.MAX_VALUE) {
            throw new LayoutException("chunkIndex: more than " + Integer.MAX_VALUE + " bytes are stored");
        }
    }

    /** All but the last are stored in the same number of bytes. */
    static ChunkIndex fixed(int chunkBytes, int originalBytes, int storedChunkBytes, int lastStoredBytes)
            throws LayoutException {
        return new ChunkIndex(chunkBytes, originalBytes, storedChunkBytes, lastStoredBytes, null);
    }

    /** Each has its own size. */
    static ChunkIndex variable(int chunkBytes, int originalBytes, int[] sizes) throws LayoutException {
        return new ChunkIndex(chunkBytes, originalBytes, 0, 0, sizes);
    }

    /** Of a log that is stored as it is. */
    public static ChunkIndex plain(int chunkBytes, int originalBytes) throws LayoutException {
        int last = originalBytes == 0 ? 0 : (originalBytes - 1) % chunkBytes + 1;
        return fixed(chunkBytes, originalBytes, chunkBytes, last);
    }

    /** Of a log whose chunks became frames of these sizes. */
    public static ChunkIndex frames(int chunkBytes, int originalBytes, List<Integer> sizes) throws LayoutException {
        return variable(chunkBytes, originalBytes, sizes.stream().mapToInt(Integer::intValue).toArray());
    }

    private static int[] starts(int[] sizes) throws LayoutException {
        int[] starts = new int[sizes.length];
        long next = 0;
        for (int number = 0; number < sizes.length; number++) {
            starts[number] = (int) next;
            next += sizes[number];
            if (next > Integer.MAX_VALUE) {
                throw new LayoutException("chunkIndex: more than " + Integer.MAX_VALUE + " bytes are stored");
            }
        }
        return starts;
    }

    /** Of the log, each chunk but the last. */
    public int chunkBytes() {
        return chunkBytes;
    }

    /** Length of the log. */
    public int originalBytes() {
        return originalBytes;
    }

    /** How many chunks there are. */
    public int count() {
        return count;
    }

    int originalStart(int chunk) {
        return chunk * chunkBytes;
    }

    int originalBytes(int chunk) {
        return chunk < count - 1 ? chunkBytes : originalBytes - originalStart(chunk);
    }

    int storedStart(int chunk) {
        return starts == null ? chunk * storedChunkBytes : starts[chunk];
    }

    int storedBytes(int chunk) {
        if (sizes != null) {
            return sizes[chunk];
        }
        return chunk < count - 1 ? storedChunkBytes : lastStoredBytes;
    }

    /** Length of the object. */
    public long storedBytes() {
        return count == 0 ? 0 : (long) storedStart(count - 1) + storedBytes(count - 1);
    }

    boolean isVariable() {
        return sizes != null;
    }

    /** Whether chunks take as much as they are. */
    boolean isPlain() {
        return sizes == null && (count == 0 || storedBytes() == originalBytes
            && (count == 1 || storedChunkBytes == chunkBytes));
    }

    /** About what it takes in memory. */
    int weight() {
        return sizes == null ? 0 : 8 * sizes.length;
    }

    /** As a manifest has it. */
    String json() {
        String common = "\"originalChunkSize\":" + chunkBytes + ",\"originalFileSize\":" + originalBytes;
        if (sizes != null) {
            return "{\"type\":\"variable\"," + common + ",\"transformedChunks\":\"" + ChunkSizes.text(sizes) + "\"}";
        }
        return "{\"type\":\"fixed\"," + common + ",\"transformedChunkSize\":" + storedChunkBytes
            + ",\"finalTransformedChunkSize\":" + lastStoredBytes + "}";
    }
}
