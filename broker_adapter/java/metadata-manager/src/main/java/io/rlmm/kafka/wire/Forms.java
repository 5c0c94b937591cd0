package io.rlmm.kafka.wire;

import java.util.List;
import java.util.Map;

/** Values that came by the wire, each held to the form that the protocol says it has. */
public final class Forms {
    private Forms() { }

    public static List<?> array(Object value, int size, String what) throws MalformedException {
        if (value instanceof List<?> list && list.size() == size) {
            return list;
        }
        throw unexpected(what, "an array of " + size, value);
    }

    public static List<?> array(Object value, String what) throws MalformedException {
        if (value instanceof List<?> list) {
            return list;
        }
        throw unexpected(what, "an array", value);
    }

    public static Map<?, ?> map(Object value, String what) throws MalformedException {
        if (value instanceof Map<?, ?> map) {
            return map;
        }
        throw unexpected(what, "a map", value);
    }

    public static String text(Object value, String what) throws MalformedException {
        if (value instanceof String text) {
            return text;
        }
        throw unexpected(what, "a text", value);
    }

    public static boolean flag(Object value, String what) throws MalformedException {
        if (value instanceof Boolean flag) {
            return flag;
        }
        throw unexpected(what, "true or false", value);
    }

    public static byte[] bytesOrNull(Object value, String what) throws MalformedException {
        if (value == null || value instanceof byte[]) {
            return (byte[]) value;
        }
        throw unexpected(what, "bytes or nil", value);
    }

    public static byte[] uuid(Object value, String what) throws MalformedException {
        if (value instanceof byte[] bytes && bytes.length == 16) {
            return bytes;
        }
        throw unexpected(what, "16 bytes", value);
    }

    public static long int64(Object value, String what) throws MalformedException {
        return number(value, Long.MIN_VALUE, Long.MAX_VALUE, what);
    }

    public static long uint63(Object value, String what) throws MalformedException {
        return number(value, 0, Long.MAX_VALUE, what);
    }

    public static int int32(Object value, String what) throws MalformedException {
        return (int) number(value, Integer.MIN_VALUE, Integer.MAX_VALUE, what);
    }

    public static int uint31(Object value, String what) throws MalformedException {
        return (int) number(value, 0, Integer.MAX_VALUE, what);
    }

    private static long number(Object value, long least, long most, String what) throws MalformedException {
        if (value instanceof Long number && number >= least && number <= most) {
            return number;
        }
        throw unexpected(what, "a number from " + least + " to " + most, value);
    }

    public static void nil(Object value, String what) throws MalformedException {
        if (value != null) {
            throw unexpected(what, "nil", value);
        }
    }

    private static MalformedException unexpected(String what, String form, Object value) {
        String said = String.valueOf(value);
        String shown = said.length() > 80 ? said.substring(0, 80) + "..." : said;
        return new MalformedException(what + " must be " + form + ", got " + shown);
    }
}
