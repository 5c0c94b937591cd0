package io.rlmm.kafka.storage.layout;

import java.nio.ByteBuffer;

/** Kafka's numbers of varying length. Its own class for them is elsewhere in each version. */
final class Varints {
    private static final int BITS = 7;
    private static final int MORE = 0x80;

    private Varints() { }

    static void write(long number, ByteBuffer into) {
        long left = number;
        while ((left & -MORE) != 0) {
            into.put((byte) (left & (MORE - 1) | MORE));
            left >>>= BITS;
        }
        into.put((byte) left);
    }

    static int size(long number) {
        return Math.max(1, (Long.SIZE - Long.numberOfLeadingZeros(number) + BITS - 1) / BITS);
    }

    static int read(ByteBuffer from) {
        long number = readLong(from);
        if (number < 0 || number > Integer.MAX_VALUE) {
            throw new IllegalArgumentException("a number of more than 31 bits");
        }
        return (int) number;
    }

    private static long readLong(ByteBuffer from) {
        long number = 0;
        for (int shift = 0; shift < Long.SIZE; shift += BITS) {
            byte next = from.get();
            number |= (long) (next & (MORE - 1)) << shift;
            if (next >= 0) {
                return number;
            }
        }
        throw new IllegalArgumentException("a number of more than 64 bits");
    }

    static void writeSigned(long number, ByteBuffer into) {
        write(zigzag(number), into);
    }

    static int signedSize(long number) {
        return size(zigzag(number));
    }

    static long readSigned(ByteBuffer from) {
        long number = readLong(from);
        return number >>> 1 ^ -(number & 1);
    }

    private static long zigzag(long number) {
        return number << 1 ^ number >> Long.SIZE - 1;
    }
}
