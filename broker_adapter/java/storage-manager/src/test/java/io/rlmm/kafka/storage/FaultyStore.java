package io.rlmm.kafka.storage;

import io.rlmm.kafka.storage.objects.ObjectStore;
import io.rlmm.kafka.storage.objects.TransientException;
import java.io.IOException;
import java.util.List;

/** A store whose n-th step of writing fails. */
final class FaultyStore implements ObjectStore {
    private final ObjectStore inner;
    private final int failing;
    int steps = 0;

    FaultyStore(ObjectStore inner, int failing) {
        this.inner = inner;
        this.failing = failing;
    }

    private void step() throws IOException {
        if (steps++ == failing) {
            throw new TransientException("as told", null);
        }
    }

    @Override
    public Sink create(String key, long bytesMax) throws IOException {
        step();
        Sink sink = inner.create(key, bytesMax);
        return new Sink() {
            @Override
            public void write(byte[] bytes, int start, int length) throws IOException {
                step();
                sink.write(bytes, start, length);
            }

            @Override
            public void finish() throws IOException {
                step();
                sink.finish();
            }

            @Override
            public void abandon() throws IOException {
                sink.abandon();
            }
        };
    }

    @Override
    public byte[] read(String key, int start, int length) throws IOException {
        return inner.read(key, start, length);
    }

    @Override
    public byte[] readWhole(String key, int bytesMax) throws IOException {
        return inner.readWhole(key, bytesMax);
    }

    @Override
    public void delete(List<String> keys) throws IOException {
        inner.delete(keys);
    }

    @Override
    public void close() {
        inner.close();
    }
}
