package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.junit.jupiter.api.Test;

/** What our classes need of a broker: all tests run with its newest API, and with its oldest. */
class LinkageTest {

    private static List<Class<?>> ours() throws Exception {
        URI at = RlmmRemoteStorageManager.class.getProtectionDomain().getCodeSource().getLocation().toURI();
        Path root = Path.of(at);
        List<Class<?>> found = new ArrayList<>();
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : files.filter(one -> one.toString().endsWith(".class")).toList()) {
                String name = root.relativize(file).toString().replace('/', '.').replaceAll("\\.class$", "");
                if (!name.endsWith("package-info")) {
                    found.add(Class.forName(name));
                }
            }
        }
        assertTrue(found.size() > 20);
        return found;
    }

    @Test
    void theApiIsTheOneThatThisRunIsMeantFor() {
        boolean hasFlag = Stream.of(RemoteLogSegmentMetadata.class.getMethods())
            .anyMatch(method -> method.getName().equals("isTxnIdxEmpty"));
        assertEquals(Boolean.getBoolean("oldest.api"), !hasFlag);
    }

    @Test
    void everyClassLoadsAndEveryMemberOfItResolves() throws Exception {
        for (Class<?> one : ours()) {
            assertFalse(one.getDeclaredMethods() == null || one.getDeclaredFields() == null);
        }
    }

    @Test
    void nothingThatChangesIsSharedBetweenManagers() throws Exception {
        for (Class<?> one : ours()) {
            for (Field field : one.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                    assertTrue(Modifier.isFinal(field.getModifiers()), field.toString());
                }
            }
        }
    }
}
