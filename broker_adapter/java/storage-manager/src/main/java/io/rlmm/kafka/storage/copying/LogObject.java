package io.rlmm.kafka.storage.copying;

import io.rlmm.kafka.storage.layout.Blocks;
import io.rlmm.kafka.storage.layout.ChunkIndex;
import io.rlmm.kafka.storage.layout.Frames;
import io.rlmm.kafka.storage.layout.LayoutException;
import io.rlmm.kafka.storage.objects.ObjectStore;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A log on its way into its object, a chunk of it in memory. */
final class LogObject {
    private static final int MAGIC_AT = 16;
    private static final int ATTRIBUTES_AT = 22;
    private static final int CODEC_BITS = 7;

    private LogObject() { }

    /** The chunks that it became. */
    static ChunkIndex write(Path file, int size, int chunkBytes, boolean isCompressed, ObjectStore.Sink sink)
            throws IOException, LayoutException {
        List<Integer> sizes = new ArrayList<>();
        long stored = 0;
        int left = size;
        byte[] chunk = new byte[Math.min(isCompressed ? chunkBytes : Math.min(chunkBytes, Blocks.BLOCK_BYTES), size)];
        try (InputStream from = Files.newInputStream(file)) {
            while (left > 0) {
                int some = from.readNBytes(chunk, 0, Math.min(chunk.length, left));
                if (some < Math.min(chunk.length, left)) {
                    throw new LayoutException(file + ": " + (size - left + some) + " of " + size + " bytes");
                }
                left -= some;
                if (isCompressed) {
                    byte[] frame = Frames.frame(chunk, some, true);
                    stored += frame.length;
                    if (stored > Integer.MAX_VALUE) {
                        throw new LayoutException(file + ": its chunks take more than " + Integer.MAX_VALUE);
                    }
                    sizes.add(frame.length);
                    sink.write(frame, 0, frame.length);
                } else {
                    sink.write(chunk, 0, some);
                }
                if (Thread.currentThread().isInterrupted()) {
                    throw new InterruptedIOException(file + ": the copy was interrupted");
                }
            }
            if (from.read() >= 0) {
                throw new LayoutException(file + ": more than the " + size + " bytes that were told");
            }
        }
        return isCompressed ? ChunkIndex.frames(chunkBytes, size, sizes) : ChunkIndex.plain(chunkBytes, size);
    }

    /** Whether the first batch says that its producer compressed it: the others are taken to be alike. */
    static boolean isCompressedAlready(Path file) throws IOException {
        try (InputStream from = Files.newInputStream(file)) {
            byte[] head = from.readNBytes(ATTRIBUTES_AT + 1);
            return head.length > ATTRIBUTES_AT && head[MAGIC_AT] == 2 && (head[ATTRIBUTES_AT] & CODEC_BITS) != 0;
        }
    }
}
