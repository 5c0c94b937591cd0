package io.rlmm.kafka.wire;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Values from msgpack: numbers as Long, str as String, bin as byte[], arrays as List, maps as Map.
 *
 * <p>Strict where a lenient reader could be led to read something else than was written, or to
 * reserve memory for what never comes: lengths are held against the bytes that are there.
 */
public final class Unpacker {
    private static final int DEPTH_MAX = 64;
    private final ByteBuffer in;

    private Unpacker(byte[] payload) {
        in = ByteBuffer.wrap(payload);
    }

    /** The one value of <code>payload</code>; nothing may stand behind it. */
    public static Object unpack(byte[] payload) throws MalformedException {
        Unpacker unpacker = new Unpacker(payload);
        Object value = unpacker.value(0);
        if (unpacker.in.hasRemaining()) {
            throw new MalformedException(unpacker.in.remaining() + " bytes stand behind a message");
        }
        return value;
    }

    private Object value(int depth) throws MalformedException {
        if (depth > DEPTH_MAX) {
            throw new MalformedException("a message nests deeper than " + DEPTH_MAX);
        }
        int head = (int) number(1);
        if (head < 0x80 || head >= 0xe0) {
            return (long) (byte) head;
        } else if (head < 0x90) {
            return map(head & 0x0f, depth);
        } else if (head < 0xa0) {
            return list(head & 0x0f, depth);
        } else if (head < 0xc0) {
            return text(head & 0x1f);
        }
        return switch (head) {
            case 0xc0 -> null;
            case 0xc2 -> false;
            case 0xc3 -> true;
            case 0xc4, 0xc5, 0xc6 -> bytes(number(1 << head - 0xc4));
            case 0xcc, 0xcd, 0xce -> number(1 << head - 0xcc);
            case 0xcf -> unsigned(number(8));
            case 0xd0 -> (long) (byte) number(1);
            case 0xd1 -> (long) (short) number(2);
            case 0xd2 -> (long) (int) number(4);
            case 0xd3 -> number(8);
            case 0xd9, 0xda, 0xdb -> text(number(1 << head - 0xd9));
            case 0xdc, 0xdd -> list(number(2 << head - 0xdc), depth);
            case 0xde, 0xdf -> map(number(2 << head - 0xde), depth);
            default -> throw new MalformedException("unexpected byte 0x" + Integer.toHexString(head));
        };
    }

    /** The next <code>width</code> bytes, most significant first and without a sign. */
    private long number(int width) throws MalformedException {
        require(width);
        return switch (width) {
            case 1 -> in.get() & 0xffL;
            case 2 -> in.getShort() & 0xffffL;
            case 4 -> in.getInt() & 0xffff_ffffL;
            default -> in.getLong();
        };
    }

    private static long unsigned(long value) throws MalformedException {
        if (value < 0) {
            throw new MalformedException("a number is above what any value here can be");
        }
        return value;
    }

    private byte[] bytes(long size) throws MalformedException {
        require(size);
        byte[] bytes = new byte[(int) size];
        in.get(bytes);
        return bytes;
    }

    private String text(long size) throws MalformedException {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(size))).toString();
        } catch (CharacterCodingException error) {
            throw new MalformedException("a text is not UTF-8");
        }
    }

    private List<Object> list(long size, int depth) throws MalformedException {
        require(size);
        List<Object> list = new ArrayList<>((int) size);
        for (long at = 0; at < size; at++) {
            list.add(value(depth + 1));
        }
        return list;
    }

    private Map<Object, Object> map(long size, int depth) throws MalformedException {
        require(2 * size);
        Map<Object, Object> map = new LinkedHashMap<>();
        for (long at = 0; at < size; at++) {
            Object key = value(depth + 1);
            boolean isKey = key instanceof String
                || key instanceof Long number && number >= 0 && number <= Integer.MAX_VALUE;
            if (!isKey || map.containsKey(key)) {
                throw new MalformedException("a key of a map is of no form, or stands there twice");
            }
            map.put(key, value(depth + 1));
        }
        return map;
    }

    private void require(long size) throws MalformedException {
        if (size > in.remaining()) {
            throw new MalformedException("a message ends in the middle of a value");
        }
    }
}
