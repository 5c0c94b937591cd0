package io.rlmm.kafka.storage.layout;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.Samples;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The form, byte by byte: recorded manifests and the vectors that Python's tests have, too. */
class ManifestTest {
    private static final int LOG_BYTES = 12_584_960;
    private static final HexFormat HEX = HexFormat.of();

    private static byte[] recorded(String name) throws Exception {
        return Files.readAllBytes(
            Path.of(System.getProperty("shared.test.data"), "manifests", name + ".rsm-manifest"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"plain", "plain-aborted", "zstd", "zstd-aborted"})
    void aRecordedManifestIsWrittenByteByByte(String name) throws Exception {
        byte[] content = recorded(name);
        Manifest read = Manifest.parse(content);
        assertEquals(LOG_BYTES, read.chunks().originalBytes());
        assertEquals(name.startsWith("zstd"), read.isCompressed());
        assertEquals(name.endsWith("aborted"), read.indexes().place(IndexType.TRANSACTION) != null);
        assertEquals(new String(content, StandardCharsets.UTF_8),
            new String(read.bytes(Samples.segment(LOG_BYTES)), StandardCharsets.UTF_8));
    }

    @Test
    void whatOurOtherWriterAddsIsPassedOver() throws Exception {
        assertArrayEquals(recorded("zstd"),
            Manifest.parse(recorded("tiered-by-us")).bytes(Samples.segment(LOG_BYTES)));
    }

    @Test
    void chunksOfTheRecordedOnesLieWhereTheyShould() throws Exception {
        ChunkIndex chunks = Manifest.parse(recorded("zstd")).chunks();
        assertEquals(4, chunks.count());
        assertEquals(2_000_010, chunks.storedStart(2));
        assertEquals(777, chunks.storedBytes(3));
        assertEquals(2_048, chunks.originalBytes(3));
        assertEquals(3_000_807, chunks.storedBytes());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "''                               | 00000000",
        "213                              | 00000001000000d5",
        "1000000,1000010,1000020,777      | 00000004000f424001000a1400000309",
        "0,1000,2,44002,369               | 000000050000000002000003e80002abe200000171",
    })
    void listsOfSizesAreThoseOfTheVectors(String sizes, String hex) throws Exception {
        int[] listed = sizes.isEmpty() ? new int[0]
            : java.util.Arrays.stream(sizes.split(",")).mapToInt(Integer::parseInt).toArray();
        assertEquals(hex, HEX.formatHex(ChunkSizes.encode(listed)));
        assertArrayEquals(listed, ChunkSizes.decode(HEX.parseHex(hex)));
        assertArrayEquals(listed, ChunkSizes.parse(ChunkSizes.text(listed)));
    }

    @Test
    void widthsOfSizesGrowWithTheirDifferences() throws Exception {
        for (int spread : new int[] {255, 256, 65_535, 65_536, 16_777_216, Integer.MAX_VALUE - 7}) {
            int[] sizes = {7, 7 + spread, 7, 1};
            assertArrayEquals(sizes, ChunkSizes.decode(ChunkSizes.encode(sizes)));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "0000", "0000000100", "00000002000000000500000000", "00000001000000d500", "7fffffff",
        "00000001ffffffff", "00000002000000000100"})
    void damagedListsAreRefused(String hex) {
        assertThrows(LayoutException.class, () -> ChunkSizes.decode(HEX.parseHex(hex)));
    }

    private static void assertRefused(String from, String to, String named) throws Exception {
        String text = new String(recorded("plain"), StandardCharsets.UTF_8);
        assertTrue(text.contains(from), from);
        byte[] changed = text.replace(from, to).getBytes(StandardCharsets.UTF_8);
        String message = assertThrows(LayoutException.class, () -> Manifest.parse(changed)).getMessage();
        assertTrue(message.contains(named), message);
    }

    @Test
    void whatOtherReadersRefuseIsRefusedWithItsField() throws Exception {
        assertRefused("{\"version\":\"1\"", "{\"version\":\"2\"", "version");
        assertRefused("{\"version\":\"1\"", "{\"version\":\"1\",\"more\":1", "more");
        assertRefused("\"type\":\"fixed\"", "\"type\":\"fixed\",\"more\":1", "chunkIndex.more");
        assertRefused("\"type\":\"fixed\"", "\"type\":\"other\"", "chunkIndex.type");
        assertRefused(",\"transaction\":null", "", "segmentIndexes.transaction");
        assertRefused("\"size\":10}", "\"size\":-1}", "producerSnapshot.size");
        assertRefused("\"size\":10}", "\"size\":1.5}", "producerSnapshot.size");
        assertRefused("\"compression\":false", "\"compression\":\"no\"", "compression");
        assertRefused("\"compression\":false", "\"compression\":false,\"compression\":false", "twice");
        assertRefused("ChunkSize\":2048", "ChunkSize\":2049", "stored as they are");
        assertRefused("\"originalChunkSize\":4194304", "\"originalChunkSize\":0", "originalChunkSize");
        assertRefused("1500}}}", "1500}}} ,", "character");
        assertRefused("\"compression\":false", "\"compression\":nul", "character");
    }

    @Test
    void whatOtherReadersTakeIsTaken() throws Exception {
        String text = new String(recorded("plain"), StandardCharsets.UTF_8);
        for (String changed : new String[] {
            text.replace("\"version\":\"1\"", "\"version\" : 1"),
            text.replace("\"compression\"", "\"encryption\":null,\"compression\""),
            text.replaceFirst(",\"remoteLogSegmentMetadata\".*", "}"),
            text.replace("\"size\":10}", "\"size\":\"10\"}"),
            text.replace("\"brokerId\":1", "\"brokerId\":[1.5e3,{\"a\":\"\\u00e9\\n\"},true]"),
        }) {
            assertEquals(10, Manifest.parse(changed.getBytes(StandardCharsets.UTF_8)).indexes()
                .place(IndexType.PRODUCER_SNAPSHOT).size());
        }
    }

    @Test
    void jsonWithoutAnEndTakesNoRoomWithoutAnEnd() {
        for (String text : new String[] {
            "[".repeat(100_000), "{\"a\":".repeat(100_000), "{\"a\":[" + "1,".repeat(200_000)}) {
            byte[] content = text.getBytes(StandardCharsets.UTF_8);
            assertThrows(LayoutException.class, () -> Manifest.parse(content));
        }
        assertThrows(LayoutException.class, () -> Manifest.parse(new byte[Manifest.BYTES_MAX + 1]));
        assertThrows(LayoutException.class, () -> Manifest.parse(new byte[] {'{', '"', (byte) 0xff}));
    }

    @Test
    void customMetadataIsThatOfTheVectors() throws Exception {
        assertEquals("020002c801020404666f6f",
            HEX.formatHex(new CustomFields(100L, null, "foo").bytes()));
        assertEquals("030002c8010105057066782f020404666f6f",
            HEX.formatHex(new CustomFields(100L, "pfx/", "foo").bytes()));
        assertEquals(new CustomFields(100L, "pfx/", "foo"),
            CustomFields.parse(HEX.parseHex("030002c8010105057066782f020404666f6f")));
        // A field of tag 9, which somebody else may have written.
        assertEquals(new CustomFields(100L, null, null), CustomFields.parse(HEX.parseHex("020002c80109020102")));
        assertNull(CustomFields.parse(new byte[] {0}).main());
        for (String hex : new String[] {"", "01", "0100", "010005c8", "01010405ff", "ffffffffffffffffffff"}) {
            assertThrows(LayoutException.class, () -> CustomFields.parse(HEX.parseHex(hex)), hex);
        }
        CustomFields large = new CustomFields(Long.MAX_VALUE, "p".repeat(300), "k");
        assertEquals(large, CustomFields.parse(large.bytes()));
        assertEquals(0, CustomFields.of(Set.of(), 1, new ObjectKeys("", "a")).bytes().length);
    }

    @Test
    void keysAreThoseOfTheLayout() {
        ObjectKeys keys = ObjectKeys.of("pfx/", Samples.segment(1));
        assertEquals("pfx/" + Samples.MAIN + ".rsm-manifest", keys.manifest());
        assertEquals("pfx/" + Samples.MAIN + ".log", keys.log());
        assertEquals("pfx/" + Samples.MAIN + ".indexes", keys.indexes());
    }

    @Test
    void aSegmentWithoutASnapshotIsNotLaidOut() {
        assertThrows(LayoutException.class, () -> IndexPlaces.of(Map.of(IndexType.OFFSET, 1L)));
    }
}
