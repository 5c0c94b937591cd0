package io.rlmm.kafka.storage.objects;

import java.net.URI;

/**
 * Where a bucket is, and how it is spoken to.
 *
 * @param endpoint null for the provider's own
 * @param region null for what the environment says
 * @param accessKey null for the default chain of credentials
 * @param partBytes of an upload in parts; so much is held for each copy that runs
 * @param readMs longest time of a read, all its attempts together
 * @param writeMs the same of one part of an upload
 * @param deleteMs the same of a deletion
 */
public record S3Settings(
        String bucket, URI endpoint, String region, boolean isPathStyle, String accessKey, String secretKey,
        int partBytes, boolean hasChecksums, boolean hasMd5, int connections, int readMs, int writeMs, int deleteMs) {

    @Override
    public String toString() {
        return "S3Settings(" + bucket + ", " + endpoint + ", " + region + ")";
    }
}
