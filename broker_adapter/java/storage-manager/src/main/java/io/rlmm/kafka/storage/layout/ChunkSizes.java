package io.rlmm.kafka.storage.layout;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;

/**
 * Sizes of stored chunks as one text of a manifest: base64 of one zstd frame of count, least of all
 * but the last, bytes for each value, the differences to the least, and the last as it is.
 */
final class ChunkSizes {
    static final int CHUNKS_MAX = 512 * 1024;
    static final int TEXT_CHARACTERS_MAX = 3 * 1024 * 1024;
    private static final int ENCODED_BYTES_MAX = 13 + 4 * CHUNKS_MAX;
    private static final String WHERE = "chunkIndex.transformedChunks";

    private ChunkSizes() { }

    static String text(int[] sizes) {
        byte[] encoded = encode(sizes);
        return Base64.getEncoder().encodeToString(Frames.frame(encoded, encoded.length, false));
    }

    static int[] parse(String text) throws LayoutException {
        if (text.length() > TEXT_CHARACTERS_MAX) {
            throw new LayoutException(WHERE + ": more than " + TEXT_CHARACTERS_MAX + " characters");
        }
        byte[] frame;
        try {
            frame = Base64.getDecoder().decode(text);
        } catch (IllegalArgumentException error) {
            throw new LayoutException(WHERE + ": no base64");
        }
        return decode(Frames.inflateUpTo(frame, ENCODED_BYTES_MAX, WHERE));
    }

    static byte[] encode(int[] sizes) {
        if (sizes.length < 2) {
            ByteBuffer few = ByteBuffer.allocate(4 + 4 * sizes.length).putInt(sizes.length);
            return (sizes.length == 0 ? few : few.putInt(sizes[0])).array();
        }
        int others = sizes.length - 1;
        int least = Arrays.stream(sizes, 0, others).min().getAsInt();
        int spread = Arrays.stream(sizes, 0, others).max().getAsInt() - least;
        int width = Math.max(1, 4 - Integer.numberOfLeadingZeros(spread) / 8);
        ByteBuffer encoded = ByteBuffer.allocate(13 + others * width);
        encoded.putInt(sizes.length).putInt(least).put((byte) width);
        for (int number = 0; number < others; number++) {
            for (int place = width - 1; place >= 0; place--) {
                encoded.put((byte) (sizes[number] - least >>> 8 * place));
            }
        }
        return encoded.putInt(sizes[others]).array();
    }

    static int[] decode(byte[] encoded) throws LayoutException {
        ByteBuffer from = ByteBuffer.wrap(encoded);
        try {
            int count = from.getInt();
            if (count < 0 || count > CHUNKS_MAX) {
                throw new LayoutException(WHERE + ": " + count + " chunks, at most " + CHUNKS_MAX + " are read");
            }
            int[] sizes = new int[count];
            if (count >= 2) {
                int least = from.getInt();
                int width = from.get();
                if (width < 1 || width > 4 || least < 0) {
                    throw new LayoutException(WHERE + ": values of " + width + " bytes on top of " + least);
                }
                for (int number = 0; number < count - 1; number++) {
                    sizes[number] = valid(least + value(from, width));
                }
            }
            if (count > 0) {
                sizes[count - 1] = valid(from.getInt());
            }
            if (from.hasRemaining()) {
                throw new LayoutException(WHERE + ": " + from.remaining() + " bytes behind the last size");
            }
            return sizes;
        } catch (BufferUnderflowException error) {
            throw new LayoutException(WHERE + ": it ends after " + encoded.length + " bytes");
        }
    }

    private static long value(ByteBuffer from, int width) {
        long value = 0;
        for (int place = 0; place < width; place++) {
            value = value << 8 | from.get() & 0xff;
        }
        return value;
    }

    private static int valid(long size) throws LayoutException {
        if (size < 0 || size > Integer.MAX_VALUE) {
            throw new LayoutException(WHERE + ": a chunk of " + size + " bytes");
        }
        return (int) size;
    }
}
