package io.rlmm.kafka.storage.layout;

import java.util.Base64;
import java.util.Map;
import java.util.Set;

/** The fields of one object of JSON, taken one by one; a fault is named with its path. */
record Fields(Map<String, Object> fields, String where) {
    private static final int SHOWN = 80;

    /** Other readers refuse a name that they do not know, so that nothing may stand under one. */
    void requireOnly(Set<String> known) throws LayoutException {
        for (String name : fields.keySet()) {
            if (!known.contains(name)) {
                throw new LayoutException("a field that is not known: " + shown(path(name)));
            }
        }
    }

    boolean has(String name) {
        return fields.get(name) != null;
    }

    Object value(String name) throws LayoutException {
        if (!fields.containsKey(name)) {
            throw new LayoutException("a field is missing: " + path(name));
        }
        return fields.get(name);
    }

    Fields object(String name) throws LayoutException {
        if (value(name) instanceof Map<?, ?> found) {
            @SuppressWarnings("unchecked")
            Map<String, Object> named = (Map<String, Object>) found;
            return new Fields(named, path(name));
        }
        throw wrong(name, "an object");
    }

    String text(String name) throws LayoutException {
        if (value(name) instanceof String found) {
            return found;
        }
        throw wrong(name, "a text");
    }

    boolean flag(String name) throws LayoutException {
        if (value(name) instanceof Boolean found) {
            return found;
        }
        throw wrong(name, "true or false");
    }

    /** Numbers may stand as texts: the plugin that the layout is from reads them. */
    int number(String name, int least) throws LayoutException {
        Object found = value(name);
        if (found instanceof String text && text.matches("[0-9]{1,10}")) {
            found = Long.valueOf(text);
        }
        if (found instanceof Long number && number >= least && number <= Integer.MAX_VALUE) {
            return number.intValue();
        }
        throw wrong(name, "a number of " + least + " to " + Integer.MAX_VALUE);
    }

    byte[] bytes(String name) throws LayoutException {
        try {
            return Base64.getDecoder().decode(text(name));
        } catch (IllegalArgumentException error) {
            throw wrong(name, "base64");
        }
    }

    LayoutException wrong(String name, String expected) {
        return new LayoutException(path(name) + ": expected " + expected);
    }

    private String path(String name) {
        return where.isEmpty() ? name : where + "." + name;
    }

    static String shown(String text) {
        return text.length() > SHOWN ? text.substring(0, SHOWN) + "..." : text;
    }
}
