package io.rlmm.kafka.wire;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;

/** Messages in frames: four bytes of length, then one array of three. */
public final class Frames {
    /** Largest frame that any service takes before it has said what it takes. */
    public static final int BYTES_MAX_UNTOLD = 64 * 1024;
    /** Largest frame as services are configured by default; no answer is longer before hello's. */
    public static final int BYTES_MAX_DEFAULT = 4 * 1024 * 1024;
    /** The largest id of a request. */
    public static final long ID_MAX = 0xffff_ffffL;

    private static final int HEAD_BYTES = 4;

    private Frames() { }

    /** The frame of a request. */
    public static byte[] request(long id, String method, List<?> args) {
        return frame(Arrays.asList(id, method, args));
    }

    /** The frame of any message. */
    public static byte[] frame(Object message) {
        byte[] frame = Packer.pack(message, HEAD_BYTES);
        ByteBuffer.wrap(frame).putInt(frame.length - HEAD_BYTES);
        return frame;
    }

    /** The payload of the next frame, which may have so many bytes. */
    public static byte[] read(DataInputStream in, int bytesMax) throws IOException, MalformedException {
        int length = in.readInt();
        if (length < 1 || length > bytesMax) {
            long said = Integer.toUnsignedLong(length);
            throw new MalformedException("a frame of " + said + " bytes, where 1 to " + bytesMax + " may come");
        }
        byte[] payload = new byte[length];
        in.readFully(payload);
        return payload;
    }
}
