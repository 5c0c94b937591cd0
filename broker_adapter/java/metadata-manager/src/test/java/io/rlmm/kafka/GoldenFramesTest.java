package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.rlmm.kafka.events.SegmentForm;
import io.rlmm.kafka.events.Written;
import io.rlmm.kafka.wire.Answer;
import io.rlmm.kafka.wire.Frames;
import io.rlmm.kafka.wire.Hello;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.MalformedException;
import io.rlmm.kafka.wire.Packer;
import io.rlmm.kafka.wire.Refusal;
import io.rlmm.kafka.wire.Unpacker;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The frames that all languages share, byte for byte: tests/data/wire/frames.json of the tree. */
class GoldenFramesTest {
    private static final Set<String> MALFORMED = Set.of(
        "message-truncated", "message-byte-behind", "message-never-used-byte",
        "message-array-longer-than-payload", "message-map-longer-than-payload",
        "message-text-longer-than-payload", "message-bin-longer-than-payload", "message-nested-too-deep",
        "message-bad-utf-8", "message-surrogate", "message-extension", "message-extension-empty",
        "message-timestamp", "message-key-twice", "message-key-bin", "message-key-true", "message-key-array",
        "message-key-too-large", "message-key-negative", "message-id-float");
    private static JsonNode golden;

    @BeforeAll
    static void read() throws IOException {
        Path file = Path.of(System.getProperty("shared.test.data"), "wire", "frames.json");
        golden = new ObjectMapper().readTree(file.toFile());
    }

    private static List<JsonNode> frames(String direction) {
        List<JsonNode> frames = StreamSupport.stream(golden.get("frames").spliterator(), false)
            .filter(one -> one.get("direction").asText().equals(direction)).toList();
        assertTrue(frames.size() > 20, direction);
        return frames;
    }

    private static byte[] bytes(JsonNode frame) {
        return HexFormat.of().parseHex(frame.get("hex").asText());
    }

    private static byte[] payload(byte[] frame) throws IOException, MalformedException {
        return Frames.read(new DataInputStream(new ByteArrayInputStream(frame)), Frames.BYTES_MAX_DEFAULT);
    }

    /** JSON's own, but for bytes, {"bin": hex}, and maps with numbers, {"map": [[key, value], ...]}. */
    private static Object value(JsonNode node) {
        if (node.isNull()) {
            return null;
        } else if (node.isBoolean()) {
            return node.asBoolean();
        } else if (node.isNumber()) {
            return node.asLong();
        } else if (node.isTextual()) {
            return node.asText();
        } else if (node.isArray()) {
            List<Object> list = new ArrayList<>();
            node.forEach(one -> list.add(value(one)));
            return list;
        } else if (node.size() == 1 && node.has("bin")) {
            return HexFormat.of().parseHex(node.get("bin").asText());
        }
        Map<Object, Object> map = new LinkedHashMap<>();
        if (node.size() == 1 && node.has("map")) {
            node.get("map").forEach(pair -> map.put(value(pair.get(0)), value(pair.get(1))));
        } else {
            node.properties().forEach(entry -> map.put(entry.getKey(), value(entry.getValue())));
        }
        return map;
    }

    private static void assertSame(Object wanted, Object found, String name) {
        assertEquals(HexFormat.of().formatHex(Packer.pack(wanted)), HexFormat.of().formatHex(Packer.pack(found)), name);
    }

    @Test
    void everyRequestIsMadeByteForByteAndRead() throws Exception {
        for (JsonNode frame : frames("request")) {
            List<?> args = (List<?>) value(frame.get("args"));
            String name = frame.get("name").asText();
            byte[] made = Frames.request(frame.get("id").asLong(), frame.get("method").asText(), args);
            assertEquals(frame.get("hex").asText(), HexFormat.of().formatHex(made), name);
            List<?> read = (List<?>) Unpacker.unpack(payload(made));
            assertSame(args, read.get(2), name);
        }
    }

    @Test
    void everyAnswerIsRead() throws Exception {
        for (JsonNode frame : frames("answer")) {
            Answer answer = Answer.read(payload(bytes(frame)));
            String name = frame.get("name").asText();
            assertEquals(frame.get("id").asLong(), answer.id(), name);
            assertSame(value(frame.get("result")), answer.result(), name);
            switch (frame.get("method").asText()) {
                case "hello" -> assertFalse(Hello.Greeting.read(answer.result()).server().isEmpty());
                case "add_segment" -> assertFalse(Written.read(answer.result()).verdict().isEmpty());
                default -> { }
            }
        }
    }

    @Test
    void everySegmentIsReadAndSaidAgainUnchanged() throws Exception {
        int count = 0;
        for (JsonNode frame : frames("answer")) {
            if (frame.get("method").asText().equals("segment_for") && !frame.get("result").isNull()) {
                List<Object> said = new ArrayList<>((List<?>) value(frame.get("result")));
                RemoteLogSegmentMetadata segment = SegmentForm.read(Fixture.ORDERS, said);
                if (Boolean.getBoolean("oldest.api")) {
                    said.set(10, false); // Segments of 3.9 know nothing of it.
                }
                assertSame(said, SegmentForm.value(segment), frame.get("name").asText());
                count++;
            }
        }
        assertTrue(count >= 4);
    }

    @Test
    void everyRefusalIsReadAndUnderstood() throws Exception {
        for (JsonNode frame : frames("refusal")) {
            Answer answer = Answer.read(payload(bytes(frame)));
            Refusal refusal = answer.refusal();
            List<?> said = (List<?>) value(frame.get("error"));
            assertEquals(said.get(0), refusal.code());
            assertSame(said.get(3), refusal.fields(), refusal.code());
            assertEquals(frame.get("id").isNull(), answer.id() == null);
            if (refusal.code().equals("superseded")) {
                assertEquals(Kind.SUPERSEDED, refusal.kind());
            }
        }
        Refusal newer = new Refusal("newer-code", "", false, Map.of("base", "not-ready"));
        assertEquals(Kind.NOT_READY, newer.kind());
        assertEquals(Kind.REFUSED_FOR_NOW, new Refusal("newer-code", "", true, Map.of()).kind());
    }

    @Test
    void whatIsNoMessageIsRefused() throws Exception {
        int count = 0;
        for (JsonNode frame : golden.get("refused")) {
            String name = frame.get("name").asText();
            if (name.startsWith("frame-")) {
                assertThrows(MalformedException.class, () -> payload(bytes(frame)), name);
            } else if (MALFORMED.contains(name)) {
                byte[] payload = payload(bytes(frame));
                assertThrows(MalformedException.class, () -> Unpacker.unpack(payload), name);
                count++;
            }
        }
        assertEquals(MALFORMED.size(), count);
    }
}
