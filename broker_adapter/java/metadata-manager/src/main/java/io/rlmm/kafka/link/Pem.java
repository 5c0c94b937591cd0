package io.rlmm.kafka.link;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Certificates and keys out of PEM files. */
final class Pem {
    private static final Pattern BLOCK = Pattern.compile(
        "-----BEGIN ([A-Z0-9 ]+)-----\\s*([A-Za-z0-9+/=\\s]*?)-----END \\1-----");

    private Pem() { }

    /** All certificates of a file, one at least. */
    static List<Certificate> certificates(Path file) throws IOException, GeneralSecurityException {
        List<Certificate> found = new ArrayList<>();
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (Matcher block = blocks(file); block.find();) {
            if (block.group(1).equals("CERTIFICATE")) {
                found.add(factory.generateCertificate(new ByteArrayInputStream(bytes(block.group(2)))));
            }
        }
        if (found.isEmpty()) {
            throw new GeneralSecurityException(file + " has no certificate in it");
        }
        return found;
    }

    /** The private key of a file, which has to be in the form of PKCS#8 and not encrypted. */
    static PrivateKey privateKey(Path file) throws IOException, GeneralSecurityException {
        for (Matcher block = blocks(file); block.find();) {
            String kind = block.group(1);
            if (kind.equals("PRIVATE KEY")) {
                return decoded(file, new PKCS8EncodedKeySpec(bytes(block.group(2))));
            } else if (kind.endsWith("PRIVATE KEY")) {
                throw new GeneralSecurityException(file + " holds a key in the form \"" + kind
                    + "\"; expected PKCS#8, not encrypted: openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW");
            }
        }
        throw new GeneralSecurityException(file + " has no private key in it");
    }

    /** Which algorithm a key is for stands within it, and no class of the JDK reads only that. */
    private static PrivateKey decoded(Path file, PKCS8EncodedKeySpec spec) throws GeneralSecurityException {
        for (String algorithm : List.of("RSA", "EC", "Ed25519", "Ed448")) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (InvalidKeySpecException error) {
                continue;
            }
        }
        throw new GeneralSecurityException(file + " holds a key of a kind that is not known");
    }

    private static Matcher blocks(Path file) throws IOException {
        return BLOCK.matcher(Files.readString(file, StandardCharsets.ISO_8859_1));
    }

    private static byte[] bytes(String base64) {
        return Base64.getMimeDecoder().decode(base64);
    }
}
