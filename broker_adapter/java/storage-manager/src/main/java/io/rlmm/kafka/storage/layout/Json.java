package io.rlmm.kafka.storage.layout;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON of another writer: one object, read strictly and in bounded memory.
 *
 * <p>A name that stands twice is refused, since two readers could believe either; so is whatever
 * stands behind the object. Values are String, Long, Double, Boolean, null, List and Map.
 */
final class Json {
    private static final int VALUES_MAX = 100_000;
    private static final int DEPTH_MAX = 64;

    private final String text;
    private int at = 0;
    private int values = 0;
    private int depth = 0;

    private Json(String text) {
        this.text = text;
    }

    static Map<String, Object> object(byte[] content, int bytesMax) throws LayoutException {
        if (content.length > bytesMax) {
            throw new LayoutException(content.length + " bytes, at most " + bytesMax + " are read");
        }
        Json json;
        try {
            json = new Json(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(content)).toString());
        } catch (CharacterCodingException error) {
            throw new LayoutException("no JSON: not UTF-8");
        }
        json.skipSpace();
        if (json.peek() != '{') {
            throw json.wrong("an object");
        }
        Map<String, Object> found = json.object();
        json.skipSpace();
        if (json.at < json.text.length()) {
            throw json.wrong("its end");
        }
        return found;
    }

    private Object value() throws LayoutException {
        if (++values > VALUES_MAX) {
            throw new LayoutException("more than " + VALUES_MAX + " values");
        }
        skipSpace();
        char next = peek();
        return switch (next) {
            case '{' -> object();
            case '[' -> list();
            case '"' -> string();
            case 't' -> word("true", Boolean.TRUE);
            case 'f' -> word("false", Boolean.FALSE);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object() throws LayoutException {
        enter();
        Map<String, Object> found = new LinkedHashMap<>();
        skipSpace();
        if (peek() == '}') {
            at++;
            depth--;
            return found;
        }
        while (true) {
            skipSpace();
            if (peek() != '"') {
                throw wrong("a name");
            }
            String name = string();
            skipSpace();
            require(':');
            if (found.containsKey(name)) {
                throw new LayoutException("no JSON to rely on: a name stands twice in one object");
            }
            found.put(name, value());
            if (isLast('}')) {
                return found;
            }
        }
    }

    private List<Object> list() throws LayoutException {
        enter();
        List<Object> found = new ArrayList<>();
        skipSpace();
        if (peek() == ']') {
            at++;
            depth--;
            return found;
        }
        do {
            found.add(value());
        } while (!isLast(']'));
        return found;
    }

    private void enter() throws LayoutException {
        at++;
        if (++depth > DEPTH_MAX) {
            throw new LayoutException("objects within objects, more than " + DEPTH_MAX);
        }
    }

    private boolean isLast(char end) throws LayoutException {
        skipSpace();
        char next = peek();
        at++;
        if (next == end) {
            depth--;
            return true;
        }
        if (next != ',') {
            at--;
            throw wrong("',' or '" + end + "'");
        }
        return false;
    }

    private String string() throws LayoutException {
        at++;
        StringBuilder found = new StringBuilder();
        while (true) {
            char next = peek();
            at++;
            if (next == '"') {
                return found.toString();
            }
            if (next < ' ') {
                throw wrong("no control character");
            }
            found.append(next == '\\' ? escaped() : next);
        }
    }

    private char escaped() throws LayoutException {
        char next = peek();
        at++;
        return switch (next) {
            case '"', '\\', '/' -> next;
            case 'b' -> '\b';
            case 'f' -> '\f';
            case 'n' -> '\n';
            case 'r' -> '\r';
            case 't' -> '\t';
            case 'u' -> unicode();
            default -> throw wrong("an escape");
        };
    }

    private char unicode() throws LayoutException {
        int code = 0;
        for (int digit = 0; digit < 4; digit++) {
            int one = Character.digit(peek(), 16);
            if (one < 0 || peek() > 'f') {
                throw wrong("four hexadecimal digits");
            }
            code = code << 4 | one;
            at++;
        }
        return (char) code;
    }

    private Object word(String word, Object value) throws LayoutException {
        if (!text.startsWith(word, at)) {
            throw wrong("a value");
        }
        at += word.length();
        return value;
    }

    private Object number() throws LayoutException {
        int start = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String found = text.substring(start, at);
        if (found.matches("-?(0|[1-9][0-9]{0,17})")) {
            return Long.valueOf(found);
        }
        if (found.length() <= 40 && found.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            try {
                // The longest that are whole: beyond 18 digits, some fit.
                return Long.valueOf(found);
            } catch (NumberFormatException error) {
                return Double.valueOf(found);
            }
        }
        at = start;
        throw wrong("a value");
    }

    private void require(char one) throws LayoutException {
        if (peek() != one) {
            throw wrong("'" + one + "'");
        }
        at++;
    }

    private char peek() throws LayoutException {
        if (at >= text.length()) {
            throw wrong("more");
        }
        return text.charAt(at);
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private LayoutException wrong(String expected) {
        return new LayoutException("no JSON: expected " + expected + " at character " + at);
    }
}
