package io.rlmm.kafka.storage.layout;

import java.security.GeneralSecurityException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Opens the parts of one segment: AES-256 in Galois/Counter mode. */
public final class SegmentCipher {
    private final SecretKeySpec key;
    private final byte[] aad;

    SegmentCipher(byte[] dataKey, byte[] aad) {
        this.key = new SecretKeySpec(dataKey, "AES");
        this.aad = aad;
    }

    byte[] open(byte[] sealed, int start, int length, String where) throws LayoutException {
        if (length < Seal.ADDED_BYTES) {
            throw new LayoutException(where + ": " + length + " bytes, a sealed part has " + Seal.ADDED_BYTES);
        }
        try {
            Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
            cipher.init(Cipher.DECRYPT_MODE, key,
                new GCMParameterSpec(8 * Seal.TAG_BYTES, sealed, start, Seal.VECTOR_BYTES));
            cipher.updateAAD(aad);
            return cipher.doFinal(sealed, start + Seal.VECTOR_BYTES, length - Seal.VECTOR_BYTES);
        } catch (GeneralSecurityException error) {
            throw new LayoutException(where + ": its tag is not that of these bytes and of the manifest's aad");
        }
    }
}
