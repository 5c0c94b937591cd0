package io.rlmm.kafka.storage.objects;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.zip.CRC32;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.ChecksumAlgorithm;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.UploadPartResponse;

/** An object on its way: one request where it fits into a part, else an upload in parts; one part is held. */
final class S3Sink implements ObjectStore.Sink {
    private static final int FIRST_BYTES = 64 * 1024;

    private final S3Client client;
    private final S3Settings settings;
    private final String key;
    private final int bufferMax;
    private final List<CompletedPart> parts = new ArrayList<>();
    private byte[] buffer;
    private int filled = 0;
    private String uploadId = null;

    S3Sink(S3Client client, S3Settings settings, String key, long bytesMax) {
        this.client = client;
        this.settings = settings;
        this.key = key;
        this.bufferMax = (int) Math.max(1, Math.min(settings.partBytes(), bytesMax));
        this.buffer = new byte[Math.min(FIRST_BYTES, bufferMax)];
    }

    @Override
    public void write(byte[] bytes, int start, int length) throws IOException {
        int at = start;
        int left = length;
        while (left > 0) {
            // Sent when there is more: what fits into one part is one request.
            if (filled == settings.partBytes()) {
                sendPart();
            }
            int some = Math.min(left, room(left));
            System.arraycopy(bytes, at, buffer, filled, some);
            filled += some;
            at += some;
            left -= some;
        }
    }

    private int room(int wanted) {
        if (filled + wanted > buffer.length && buffer.length < settings.partBytes()) {
            // What was told is believed for the first size alone.
            int size = filled + wanted <= bufferMax ? bufferMax : settings.partBytes();
            buffer = Arrays.copyOf(buffer, size);
        }
        return buffer.length - filled;
    }

    private void sendPart() throws IOException {
        if (uploadId == null) {
            uploadId = S3Store.call("PUT", key, () -> client.createMultipartUpload(create -> {
                create.bucket(settings.bucket()).key(key)
                    .overrideConfiguration(S3Clients.within(settings.writeMs()));
                if (settings.hasChecksums()) {
                    create.checksumAlgorithm(ChecksumAlgorithm.CRC32);
                }
            })).uploadId();
        }
        int number = parts.size() + 1;
        String checksum = settings.hasChecksums() ? checksum() : null;
        UploadPartResponse sent = S3Store.call("PUT", key, () -> client.uploadPart(
            part -> part.bucket(settings.bucket()).key(key).uploadId(uploadId).partNumber(number)
                .checksumCRC32(checksum).overrideConfiguration(S3Clients.within(settings.writeMs())),
            body()));
        parts.add(CompletedPart.builder().partNumber(number).eTag(sent.eTag()).checksumCRC32(checksum).build());
        filled = 0;
    }

    private RequestBody body() {
        byte[] bytes = buffer;
        int size = filled;
        return RequestBody.fromContentProvider(
            () -> new java.io.ByteArrayInputStream(bytes, 0, size), size, "application/octet-stream");
    }

    private String checksum() {
        CRC32 crc = new CRC32();
        crc.update(buffer, 0, filled);
        return Base64.getEncoder().encodeToString(
            ByteBuffer.allocate(4).putInt((int) crc.getValue()).array());
    }

    @Override
    public void finish() throws IOException {
        if (uploadId == null) {
            String checksum = settings.hasChecksums() ? checksum() : null;
            S3Store.call("PUT", key, () -> client.putObject(
                put -> put.bucket(settings.bucket()).key(key).checksumCRC32(checksum)
                    .overrideConfiguration(S3Clients.within(settings.writeMs())),
                body()));
        } else {
            if (filled > 0) {
                sendPart();
            }
            S3Store.call("PUT", key, () -> client.completeMultipartUpload(
                complete -> complete.bucket(settings.bucket()).key(key).uploadId(uploadId)
                    .multipartUpload(all -> all.parts(parts))
                    .overrideConfiguration(S3Clients.within(settings.writeMs()))));
            uploadId = null;
        }
        buffer = new byte[0];
    }

    @Override
    public void abandon() throws IOException {
        buffer = new byte[0];
        if (uploadId != null) {
            S3Store.call("PUT", key, () -> client.abortMultipartUpload(
                abort -> abort.bucket(settings.bucket()).key(key).uploadId(uploadId)
                    .overrideConfiguration(S3Clients.within(settings.deleteMs()))));
            uploadId = null;
        }
    }
}
