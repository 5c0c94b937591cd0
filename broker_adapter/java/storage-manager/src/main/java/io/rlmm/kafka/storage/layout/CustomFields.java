package io.rlmm.kafka.storage.layout;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Set;

/**
 * What a broker keeps of a segment for us: size of all three objects, prefix, key; null where it is
 * not there. A section of tagged fields in Kafka's form.
 */
public record CustomFields(Long remoteBytes, String prefix, String main) {
    /** Names of the fields, as a configuration has them. */
    public static final String SIZE = "REMOTE_SIZE";
    /** Of the prefix. */
    public static final String PREFIX = "OBJECT_PREFIX";
    /** Of the key without prefix and suffix. */
    public static final String KEY = "OBJECT_KEY";

    static final CustomFields NONE = new CustomFields(null, null, null);

    /** Those of a new segment that are wanted. */
    public static CustomFields of(Set<String> wanted, long remoteBytes, ObjectKeys keys) {
        return new CustomFields(
            wanted.contains(SIZE) ? remoteBytes : null,
            wanted.contains(PREFIX) ? keys.prefix() : null,
            wanted.contains(KEY) ? keys.main() : null);
    }

    /** Empty where there is no field. */
    public byte[] bytes() {
        int count = (remoteBytes == null ? 0 : 1) + (prefix == null ? 0 : 1) + (main == null ? 0 : 1);
        if (count == 0) {
            return new byte[0];
        }
        ByteBuffer into = ByteBuffer.allocate(64 + utf8(prefix).length + utf8(main).length);
        Varints.write(count, into);
        if (remoteBytes != null) {
            into.put((byte) 0).put((byte) Varints.signedSize(remoteBytes));
            Varints.writeSigned(remoteBytes, into);
        }
        write(into, 1, prefix);
        write(into, 2, main);
        byte[] bytes = new byte[into.position()];
        into.flip().get(bytes);
        return bytes;
    }

    private static byte[] utf8(String text) {
        return text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    }

    private static void write(ByteBuffer into, int tag, String text) {
        if (text != null) {
            byte[] bytes = utf8(text);
            Varints.write(tag, into);
            Varints.write(Varints.size(bytes.length + 1) + bytes.length, into);
            Varints.write(bytes.length + 1, into);
            into.put(bytes);
        }
    }

    /** Fields of other tags are passed over. */
    static CustomFields parse(byte[] bytes) throws LayoutException {
        ByteBuffer from = ByteBuffer.wrap(bytes);
        Long remoteBytes = null;
        String prefix = null;
        String main = null;
        try {
            for (int left = Varints.read(from); left > 0; left--) {
                int tag = Varints.read(from);
                int length = Varints.read(from);
                if (length < 0 || length > from.remaining()) {
                    throw new LayoutException("custom metadata: a field of " + length + " bytes");
                }
                ByteBuffer value = from.slice(from.position(), length);
                from.position(from.position() + length);
                if (tag == 0) {
                    remoteBytes = Varints.readSigned(value);
                } else if (tag == 1) {
                    prefix = text(value);
                } else if (tag == 2) {
                    main = text(value);
                }
            }
        } catch (BufferUnderflowException | IllegalArgumentException error) {
            throw new LayoutException("custom metadata: no section of tagged fields");
        }
        return new CustomFields(remoteBytes, prefix, main);
    }

    private static String text(ByteBuffer value) throws LayoutException {
        int length = Varints.read(value) - 1;
        if (length != value.remaining()) {
            throw new LayoutException("custom metadata: a text of " + length + " bytes in " + value.remaining());
        }
        return StandardCharsets.UTF_8.decode(value).toString();
    }
}
