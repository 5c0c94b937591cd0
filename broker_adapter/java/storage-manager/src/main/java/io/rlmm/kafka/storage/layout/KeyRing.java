package io.rlmm.kafka.storage.layout;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.interfaces.RSAPrivateKey;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Cipher;
import javax.crypto.spec.OAEPParameterSpec;
import javax.crypto.spec.PSource;

/**
 * The private keys that segments were encrypted for, by the ids that their manifests name:
 * <pre>{"format": "rlmm-key-ring", "version": 1, "keys": {"key-2026": "key-2026.pem"}}</pre>
 * Files that are named without a folder lie beside the ring. A key that is rotated stays in it for as
 * long as there are segments of its time.
 */
public final class KeyRing {
    private static final int RING_BYTES_MAX = 1024 * 1024;
    private static final int KEY_BYTES_MAX = 64 * 1024;
    private static final int DATA_KEY_BYTES = 32;
    private static final OAEPParameterSpec OAEP = new OAEPParameterSpec(
        "SHA3-512", "MGF1", new MGF1ParameterSpec("SHA3-512"), PSource.PSpecified.DEFAULT);

    private final Map<String, PrivateKey> keys;

    private KeyRing(Map<String, PrivateKey> keys) {
        this.keys = keys;
    }

    /** A ring of no key, which says so when one is needed. */
    public static KeyRing none() {
        return new KeyRing(Map.of());
    }

    /** The ring and all its keys. */
    public static KeyRing read(Path file) throws IOException, LayoutException {
        Fields fields = new Fields(Json.object(content(file, RING_BYTES_MAX), RING_BYTES_MAX), "");
        fields.requireOnly(Set.of("format", "version", "keys"));
        if (!fields.text("format").equals("rlmm-key-ring") || fields.number("version", 1) != 1) {
            throw new LayoutException("no key ring of version 1");
        }
        Fields named = fields.object("keys");
        Map<String, PrivateKey> keys = new TreeMap<>();
        for (String id : named.fields().keySet()) {
            if (id.isBlank() || id.contains(":")) {
                throw new LayoutException("keys: " + Fields.shown(id) + " is no id of a key");
            }
            keys.put(id, key(file.resolveSibling(named.text(id))));
        }
        return new KeyRing(keys);
    }

    /** A reader of the ring learns where the keys are; keys that every user can read are none. */
    private static byte[] content(Path file, int bytesMax) throws IOException, LayoutException {
        if (Files.getFileStore(file).supportsFileAttributeView("posix")
                && Files.getPosixFilePermissions(file).contains(PosixFilePermission.OTHERS_READ)) {
            throw new LayoutException(file + ": every user of the machine may read it");
        }
        try (InputStream from = Files.newInputStream(file)) {
            byte[] content = from.readNBytes(bytesMax + 1);
            if (content.length > bytesMax) {
                throw new LayoutException(file + ": more than " + bytesMax + " bytes");
            }
            return content;
        }
    }

    /** Nothing of its content is said, whatever is wrong with it. */
    private static PrivateKey key(Path file) throws IOException, LayoutException {
        String pem = new String(content(file, KEY_BYTES_MAX), StandardCharsets.US_ASCII);
        String begin = "-----BEGIN PRIVATE KEY-----";
        int start = pem.indexOf(begin);
        int end = pem.indexOf("-----END PRIVATE KEY-----");
        try {
            if (start >= 0 && end > start) {
                byte[] bytes = Base64.getMimeDecoder().decode(pem.substring(start + begin.length(), end));
                return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(bytes));
            }
        } catch (GeneralSecurityException | IllegalArgumentException error) {
            // Refused below.
        }
        throw new LayoutException(file + ": no private key of RSA in PEM, PKCS#8, without a passphrase");
    }

    /** What opens the parts of a segment; null where it is not encrypted. */
    public SegmentCipher cipher(Manifest manifest) throws LayoutException {
        Seal seal = manifest.seal();
        if (seal == null) {
            return null;
        }
        String shown = Fields.shown(seal.keyId());
        PrivateKey key = keys.get(seal.keyId());
        if (key == null) {
            throw new SealedException("sealed by the key '" + shown + "', the key ring has "
                + (keys.isEmpty() ? "no key" : String.join(", ", keys.keySet())));
        }
        byte[] dataKey = open(key, seal.sealedKey());
        if (dataKey == null) {
            throw new SealedException("the key '" + shown + "' of the key ring does not open the segment's data key");
        }
        return new SegmentCipher(dataKey, seal.aad());
    }

    /** Null for every fault: a caller that has sealed keys opened learns nothing from the failures. */
    private static byte[] open(PrivateKey key, byte[] sealed) {
        try {
            if (key instanceof RSAPrivateKey) {
                Cipher cipher = Cipher.getInstance("RSA/ECB/OAEPPadding");
                cipher.init(Cipher.DECRYPT_MODE, key, OAEP);
                byte[] opened = cipher.doFinal(sealed);
                return opened.length == DATA_KEY_BYTES ? opened : null;
            }
        } catch (GeneralSecurityException error) {
            // As for a key of another length.
        }
        return null;
    }

    @Override
    public String toString() {
        return "KeyRing" + keys.keySet();
    }
}
