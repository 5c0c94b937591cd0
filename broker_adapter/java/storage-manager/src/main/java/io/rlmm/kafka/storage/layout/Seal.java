package io.rlmm.kafka.storage.layout;

import java.util.Base64;

/** What a segment is encrypted with: its own key, sealed for the private key of that id. No secret. */
record Seal(String keyId, byte[] sealedKey, byte[] aad) {
    /** What sealing adds to each chunk and each index: an initialisation vector and a tag. */
    static final int VECTOR_BYTES = 12;
    static final int TAG_BYTES = 16;
    static final int ADDED_BYTES = VECTOR_BYTES + TAG_BYTES;

    static Seal parse(String dataKey, byte[] aad) throws LayoutException {
        int colon = dataKey.indexOf(':');
        try {
            if (colon > 0 && !dataKey.substring(0, colon).isBlank() && colon < dataKey.length() - 1) {
                return new Seal(
                    dataKey.substring(0, colon), Base64.getDecoder().decode(dataKey.substring(colon + 1)), aad);
            }
        } catch (IllegalArgumentException error) {
            // Refused below.
        }
        throw new LayoutException("encryption.dataKey: expected ID:BASE64");
    }

    @Override
    public String toString() {
        return "Seal(" + Fields.shown(keyId) + ")";
    }
}
