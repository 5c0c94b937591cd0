package io.rlmm.kafka.storage.layout;

import java.util.Arrays;

/**
 * A log in blocks, each asked for at once and kept: one chunk, or as many small ones as make one
 * request worth its while. A log that is stored as it is needs no heed of its chunks.
 */
public record Blocks(Manifest manifest, SegmentCipher cipher, int blockBytes, int count) {
    /** About what one request fetches. */
    public static final int BLOCK_BYTES = 4 * 1024 * 1024;
    /** Larger chunks are neither made nor inflated: one is held in memory, before and after. */
    public static final int CHUNK_BYTES_MAX = 64 * 1024 * 1024;

    /** A range of the stored object. */
    public record Range(int start, int length) { }

    /** How a log of that manifest is read. */
    public static Blocks of(Manifest manifest, SegmentCipher cipher) throws LayoutException {
        ChunkIndex chunks = manifest.chunks();
        int blockBytes = BLOCK_BYTES;
        if (manifest.isCompressed() || cipher != null) {
            int largest = Math.min(chunks.chunkBytes(), chunks.originalBytes());
            if (largest > CHUNK_BYTES_MAX) {
                throw new LayoutException("chunks of " + largest + " bytes, at most " + CHUNK_BYTES_MAX + " are held");
            }
            int least = cipher == null ? 1 : Seal.ADDED_BYTES;
            // Those between are as the first, where all but the last are of one size.
            int step = chunks.isVariable() ? 1 : Math.max(1, chunks.count() - 1);
            for (int chunk = 0; chunk < chunks.count(); chunk += step) {
                if (chunks.storedBytes(chunk) < least) {
                    throw new LayoutException("chunk " + chunk + ": stored in " + chunks.storedBytes(chunk) + " bytes");
                }
            }
            blockBytes = Math.max(1, BLOCK_BYTES / chunks.chunkBytes()) * chunks.chunkBytes();
        }
        int count = (int) (((long) chunks.originalBytes() + blockBytes - 1) / blockBytes);
        return new Blocks(manifest, cipher, blockBytes, count);
    }

    private boolean isPlain() {
        return !manifest.isCompressed() && cipher == null;
    }

    /** Where a block begins in the log. */
    public int start(int block) {
        return block * blockBytes;
    }

    /** How much of the log it is. */
    public int length(int block) {
        return Math.min(blockBytes, manifest.chunks().originalBytes() - start(block));
    }

    /** What has to be asked for. */
    public Range stored(int block) {
        if (isPlain()) {
            return new Range(start(block), length(block));
        }
        ChunkIndex chunks = manifest.chunks();
        int first = start(block) / chunks.chunkBytes();
        int last = (start(block) + length(block) - 1) / chunks.chunkBytes();
        int start = chunks.storedStart(first);
        return new Range(start, chunks.storedStart(last) + chunks.storedBytes(last) - start);
    }

    /** The block of the log that was stored so. Nothing of it is believed. */
    public byte[] content(int block, byte[] stored) throws LayoutException {
        Range range = stored(block);
        if (stored.length != range.length()) {
            throw new LayoutException("log: " + stored.length + " bytes at " + range.start() + ", expected "
                + range.length());
        }
        if (isPlain()) {
            return stored;
        }
        ChunkIndex chunks = manifest.chunks();
        byte[] content = new byte[length(block)];
        int first = start(block) / chunks.chunkBytes();
        for (int chunk = first, to = 0; to < content.length; chunk++) {
            int expected = chunks.originalBytes(chunk);
            fill(stored, chunks.storedStart(chunk) - range.start(), chunks.storedBytes(chunk), content, to, expected,
                "chunk " + chunk + ", " + chunks.storedBytes(chunk) + " bytes at " + chunks.storedStart(chunk));
            to += expected;
        }
        return content;
    }

    private void fill(byte[] stored, int at, int length, byte[] content, int to, int expected, String where)
            throws LayoutException {
        byte[] from = stored;
        int start = at;
        int size = length;
        if (cipher != null) {
            from = cipher.open(stored, at, length, where);
            start = 0;
            size = from.length;
        }
        if (manifest.isCompressed()) {
            Frames.inflate(from, start, size, content, to, expected, where);
        } else if (size == expected) {
            System.arraycopy(from, start, content, to, size);
        } else {
            throw new LayoutException(where + ": " + size + " bytes in it, expected " + expected);
        }
    }

    /** About what a manifest takes in memory. */
    public int weight() {
        return 1024 + manifest.chunks().weight();
    }

    /** An index that was stored so. */
    public byte[] index(byte[] stored, int start, int length) throws LayoutException {
        if (length == 0) {
            return new byte[0];
        }
        if (cipher != null) {
            return cipher.open(stored, start, length, "index of " + length + " bytes at " + start);
        }
        return Arrays.copyOfRange(stored, start, start + length);
    }
}
