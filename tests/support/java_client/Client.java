// A client of the frame protocol in one file without any dependency, written from docs/wire-protocol.md.
//
//   java Client.java /path/to/socket | host:port  TOPIC_ID_HEX  TOPIC  PARTITION   tells a short story
//   java Client.java --codec                      reads frames in hex, prints each as JSON and packed anew
// Every line that is printed is one JSON value. Bytes are {"bin": hex}, maps of numbers {"map": [[key, value], ...]}.

import java.io.*;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.stream.Collectors;

public class Client {
    static void pack(DataOutputStream out, Object value) throws IOException {
        if (value == null || value instanceof Boolean) out.writeByte(value == null ? 0xc0 : (boolean) value ? 0xc3 : 0xc2);
        else if (value instanceof Number number) packNumber(out, number.longValue());
        else if (value instanceof String text) {
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            packHead(out, utf8.length, 0xa0, 32, 0xd9, 0xda);
            out.write(utf8);
        } else if (value instanceof byte[] bytes) {
            packHead(out, bytes.length, 0, 0, 0xc4, 0xc5);
            out.write(bytes);
        } else if (value instanceof List<?> list) {
            packHead(out, list.size(), 0x90, 16, -1, 0xdc);
            for (Object one : list) pack(out, one);
        } else if (value instanceof Map<?, ?> map) {
            packHead(out, map.size(), 0x80, 16, -1, 0xde);
            for (Map.Entry<?, ?> entry : map.entrySet()) for (Object one : list(entry.getKey(), entry.getValue())) pack(out, one);
        } else throw new IOException("no form for " + value.getClass());
    }

    static void packNumber(DataOutputStream out, long value) throws IOException {
        if (value >= -32 && value < 128) { out.writeByte((int) value); return; }
        int bits = value >= 0 ? 64 - Long.numberOfLeadingZeros(value) : 65 - Long.numberOfLeadingZeros(~value);
        int power = bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
        out.writeByte((value >= 0 ? 0xcc : 0xd0) + power);
        out.write(ByteBuffer.allocate(8).putLong(value).array(), 8 - (1 << power), 1 << power);
    }

    static void packHead(DataOutputStream out, int size, int fix, int fixEnd, int eight, int sixteen) throws IOException {
        if (size < fixEnd) out.writeByte(fix | size);
        else if (eight >= 0 && size < 1 << 8) { out.writeByte(eight); out.writeByte(size); }
        else if (size < 1 << 16) { out.writeByte(sixteen); out.writeShort(size); }
        else { out.writeByte(sixteen + 1); out.writeInt(size); }
    }

    static Object unpack(ByteBuffer in) throws IOException {
        int head = in.get() & 0xff;
        if (head < 0x80 || head >= 0xe0) return (long) (byte) head;
        if (head < 0x90) return unpackMap(in, head & 0x0f);
        if (head < 0xa0) return unpackList(in, head & 0x0f);
        if (head < 0xc0) return new String(take(in, head & 0x1f), StandardCharsets.UTF_8);
        return switch (head) {
            case 0xc0 -> null;
            case 0xc2, 0xc3 -> head == 0xc3;
            case 0xc4, 0xc5, 0xc6 -> take(in, size(in, head - 0xc4));
            case 0xd9, 0xda, 0xdb -> new String(take(in, size(in, head - 0xd9)), StandardCharsets.UTF_8);
            case 0xcc, 0xcd -> (long) size(in, head - 0xcc);
            case 0xce -> in.getInt() & 0xffffffffL;
            case 0xcf, 0xd3 -> in.getLong();
            case 0xd0 -> (long) in.get();
            case 0xd1 -> (long) in.getShort();
            case 0xd2 -> (long) in.getInt();
            case 0xdc, 0xdd -> unpackList(in, size(in, head - 0xdb));
            case 0xde, 0xdf -> unpackMap(in, size(in, head - 0xdd));
            default -> throw new IOException("unexpected byte " + head);
        };
    }

    static int size(ByteBuffer in, int width) {
        return width == 0 ? in.get() & 0xff : width == 1 ? in.getShort() & 0xffff : in.getInt();
    }

    static byte[] take(ByteBuffer in, int size) {
        byte[] bytes = new byte[size];
        in.get(bytes);
        return bytes;
    }

    static List<Object> unpackList(ByteBuffer in, int size) throws IOException {
        List<Object> list = new ArrayList<>();
        for (int at = 0; at < size; at++) list.add(unpack(in));
        return list;
    }

    static Map<Object, Object> unpackMap(ByteBuffer in, int size) throws IOException {
        return map(unpackList(in, 2 * size).toArray());
    }

    static String json(Object value) {
        if (value instanceof byte[] bytes) return "{\"bin\": \"" + HexFormat.of().formatHex(bytes) + "\"}";
        if (value instanceof String text)
            return text.codePoints().mapToObj(c -> c < 32 || c == '"' || c == '\\' ? String.format("\\u%04x", c) : Character.toString(c))
                .collect(Collectors.joining("", "\"", "\""));
        if (value instanceof List<?> list) return list.stream().map(Client::json).collect(Collectors.joining(", ", "[", "]"));
        if (value instanceof Map<?, ?> map) {
            if (!map.keySet().stream().allMatch(String.class::isInstance))
                return "{\"map\": " + json(map.entrySet().stream().map(e -> list(e.getKey(), e.getValue())).toList()) + "}";
            return map.entrySet().stream().map(e -> json(e.getKey()) + ": " + json(e.getValue())).collect(Collectors.joining(", ", "{", "}"));
        }
        return String.valueOf(value);
    }

    private final DataInputStream in;
    private final DataOutputStream out;
    private final Map<Long, List<Object>> early = new LinkedHashMap<>();
    private long nextId = 0;

    Client(SocketAddress address) throws IOException {
        SocketChannel channel = SocketChannel.open(address);
        in = new DataInputStream(Channels.newInputStream(channel));
        out = new DataOutputStream(Channels.newOutputStream(channel));
    }

    long send(String method, Object... args) throws IOException {
        out.write(frame(list(nextId, method, list(args))));
        return nextId++;
    }

    List<Object> receive(long id) throws IOException {
        while (!early.containsKey(id)) {
            @SuppressWarnings("unchecked")
            List<Object> answer = (List<Object>) unpack(ByteBuffer.wrap(in.readNBytes(in.readInt())));
            if (answer.get(0) == null) throw new IOException("the connection is refused: " + json(answer));
            early.put((Long) answer.get(0), answer);
        }
        return early.remove(id);
    }

    Object call(String method, Object... args) throws IOException {
        return tell(method, receive(send(method, args)));
    }

    static Object tell(String method, List<Object> answer) {
        String outcome = answer.get(1) == null ? "result" : "error";
        System.out.println(json(map("call", method, outcome, answer.get(outcome.equals("result") ? 2 : 1))));
        return answer.get(2);
    }

    static byte[] frame(Object message) throws IOException {
        ByteArrayOutputStream payload = new ByteArrayOutputStream();
        pack(new DataOutputStream(payload), message);
        return ByteBuffer.allocate(4 + payload.size()).putInt(payload.size()).put(payload.toByteArray()).array();
    }

    static List<Object> list(Object... values) { return Arrays.asList(values); }
    static Map<Object, Object> map(Object... pairs) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) map.put(pairs[at], pairs[at + 1]);
        return map;
    }
    static byte[] uuid(long low) { return ByteBuffer.allocate(16).putLong(8, low).array(); }

    void tellStory(Object partition) throws IOException {
        call("hello", map("versions", list(1), "client", "foreign/1", "broker_id", 7, "instance", uuid(99)));
        call("assign", list(partition), list(), true);
        call("wait_ready", partition, map("timeout_ms", 30_000));
        List<?> last = null;
        for (int number = 1; number <= 5; number++) {
            int start = (number - 1) * 100;
            List<Object> segment = list(uuid(number), start, start + 99, 7, 1_700_000_000_000L, 1_700_000_000_000L + number, list(list(0, start)), 1024, null, 0, false);
            call("add_segment", partition, segment);
            last = (List<?>) call("update_segment", partition, uuid(number), 7, 1_700_000_000_100L + number, new byte[] {(byte) number}, 1);
        }
        call("update_segment", partition, uuid(77), 7, 1_700_000_000_200L, null, 1);
        call("segment_for", partition, 0, 150, map("at_least", map(last.get(0), last.get(1)), "timeout_ms", 5_000));
        call("segment_for", partition, 0, 5_000);
        long first = nextId;
        for (int number = 0; number < 5; number++) send("segment_for", partition, 0, number * 100);
        for (int number = 4; number >= 0; number--) tell("segment_for", receive(first + number));
        call("segments_for", list(list(partition, 0, 0), list(partition, 0, 5_000), list(partition, -1, 0)));
        Object after = null;
        do after = ((List<?>) call("list_segments", partition, after, 2)).get(1); while (after != null);
        call("remote_log_size", partition, (Object) null);
        call("is_ready", list(uuid(5), "another", 0));
        call("segment_for", list(uuid(5), "another", 0), 0, 0);
        call("shrug");
        for (String method : List.of("status", "ping")) call(method);
    }

    public static void main(String[] args) throws IOException {
        if (args[0].equals("--codec")) {
            for (Scanner lines = new Scanner(System.in); lines.hasNextLine(); ) {
                ByteBuffer data = ByteBuffer.wrap(HexFormat.of().parseHex(lines.nextLine()));
                data.getInt();
                Object message = unpack(data);
                System.out.println(json(list(message, frame(message))));
            }
            return;
        }
        int colon = args[0].lastIndexOf(':');
        SocketAddress address = args[0].startsWith("/") ? UnixDomainSocketAddress.of(args[0])
            : new InetSocketAddress(args[0].substring(0, colon), Integer.parseInt(args[0].substring(colon + 1)));
        new Client(address).tellStory(list(HexFormat.of().parseHex(args[1]), args[2], Integer.parseInt(args[3])));
    }
}
