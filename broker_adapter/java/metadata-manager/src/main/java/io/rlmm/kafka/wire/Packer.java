package io.rlmm.kafka.wire;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Values to msgpack, each in its smallest form.
 *
 * <p>Of msgpack the protocol uses nil, bool, int, str, bin, array and map; anything else is refused.
 */
public final class Packer {
    private ByteBuffer buffer = ByteBuffer.allocate(256);

    /** The bytes of <code>value</code>, behind <code>room</code> bytes that are left for a head. */
    static byte[] pack(Object value, int room) {
        Packer packer = new Packer();
        packer.buffer.position(room);
        packer.put(value);
        return Arrays.copyOf(packer.buffer.array(), packer.buffer.position());
    }

    /** The bytes of <code>value</code>. */
    public static byte[] pack(Object value) {
        return pack(value, 0);
    }

    private void put(Object value) {
        if (value == null) {
            room(1).put((byte) 0xc0);
        } else if (value instanceof Boolean flag) {
            room(1).put((byte) (flag ? 0xc3 : 0xc2));
        } else if (value instanceof Long || value instanceof Integer) {
            putNumber(((Number) value).longValue());
        } else if (value instanceof String text) {
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            putHead(bytes.length, 0xa0, 31, 0xd9, 0xda);
            room(bytes.length).put(bytes);
        } else if (value instanceof byte[] bytes) {
            putHead(bytes.length, 0, -1, 0xc4, 0xc5);
            room(bytes.length).put(bytes);
        } else if (value instanceof List<?> list) {
            putHead(list.size(), 0x90, 15, -1, 0xdc);
            list.forEach(this::put);
        } else if (value instanceof Map<?, ?> map) {
            putHead(map.size(), 0x80, 15, -1, 0xde);
            map.forEach((key, one) -> {
                put(key);
                put(one);
            });
        } else {
            throw new IllegalArgumentException("no form for " + value.getClass().getName());
        }
    }

    private void putNumber(long value) {
        if (value >= -32 && value < 128) {
            room(1).put((byte) value);
        } else if (value >= 0) {
            if (value < 1L << 8) {
                room(2).put((byte) 0xcc).put((byte) value);
            } else if (value < 1L << 16) {
                room(3).put((byte) 0xcd).putShort((short) value);
            } else if (value < 1L << 32) {
                room(5).put((byte) 0xce).putInt((int) value);
            } else {
                room(9).put((byte) 0xcf).putLong(value);
            }
        } else if (value >= Byte.MIN_VALUE) {
            room(2).put((byte) 0xd0).put((byte) value);
        } else if (value >= Short.MIN_VALUE) {
            room(3).put((byte) 0xd1).putShort((short) value);
        } else if (value >= Integer.MIN_VALUE) {
            room(5).put((byte) 0xd2).putInt((int) value);
        } else {
            room(9).put((byte) 0xd3).putLong(value);
        }
    }

    /** The head of something with a size; -1 for a width that its kind does not have. */
    private void putHead(int size, int small, int smallMax, int eight, int sixteen) {
        if (size <= smallMax) {
            room(1).put((byte) (small | size));
        } else if (eight >= 0 && size < 1 << 8) {
            room(2).put((byte) eight).put((byte) size);
        } else if (size < 1 << 16) {
            room(3).put((byte) sixteen).putShort((short) size);
        } else {
            room(5).put((byte) (sixteen + 1)).putInt(size);
        }
    }

    private ByteBuffer room(int size) {
        if (buffer.remaining() < size) {
            int grown = Math.max(buffer.capacity() * 2, buffer.position() + size);
            buffer = ByteBuffer.wrap(Arrays.copyOf(buffer.array(), grown)).position(buffer.position());
        }
        return buffer;
    }
}
