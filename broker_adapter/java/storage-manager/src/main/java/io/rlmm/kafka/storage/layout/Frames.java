package io.rlmm.kafka.storage.layout;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdException;
import java.util.Arrays;

/**
 * One zstd frame at a time, in both directions. What a frame says of its size is compared with what
 * is expected before a byte is allocated.
 */
public final class Frames {
    private static final int LEVEL = 3;

    private Frames() { }

    /** A frame that says how much it holds; with a checksum where others' readers should check it. */
    public static byte[] frame(byte[] content, int length, boolean hasChecksum) {
        try (ZstdCompressCtx context = new ZstdCompressCtx()) {
            context.setLevel(LEVEL).setChecksum(hasChecksum).setContentSize(true);
            byte[] room = new byte[Math.toIntExact(Zstd.compressBound(length))];
            int size = context.compressByteArray(room, 0, room.length, content, 0, length);
            return Arrays.copyOf(room, size);
        }
    }

    /** Fills a part of <i>target</i> exactly. */
    static void inflate(byte[] frame, int start, int length, byte[] target, int to, int expected, String where)
            throws LayoutException {
        long stated = stated(frame, start, length, where);
        if (stated != expected) {
            throw new LayoutException(where + ": a frame of " + stated + " bytes, expected " + expected);
        }
        try (ZstdDecompressCtx context = new ZstdDecompressCtx()) {
            int made = context.decompressByteArray(target, to, expected, frame, start, length);
            if (made != expected) {
                throw new LayoutException(where + ": " + made + " bytes in a frame, expected " + expected);
            }
        } catch (ZstdException error) {
            throw new LayoutException(where + ": " + error.getMessage());
        }
    }

    static byte[] inflateUpTo(byte[] frame, int bytesMax, String where) throws LayoutException {
        long stated = stated(frame, 0, frame.length, where);
        if (stated > bytesMax) {
            throw new LayoutException(where + ": a frame of " + stated + " bytes, at most " + bytesMax + " are read");
        }
        byte[] made = new byte[(int) stated];
        inflate(frame, 0, frame.length, made, 0, made.length, where);
        return made;
    }

    private static long stated(byte[] frame, int start, int length, String where) throws LayoutException {
        // A frame of nothing and one that does not say its size are told apart by this call alone.
        long stated = length == 0 ? -2 : Zstd.getFrameContentSize(frame, start, length);
        if (stated < 0) {
            throw new LayoutException(where + ": no zstd frame that says its size");
        }
        return stated;
    }
}
