package io.rlmm.kafka.storage.objects;

import java.io.IOException;
import java.util.List;

/** Objects by their keys. Every call ends by a deadline of its own, and early on an interrupt. */
public interface ObjectStore extends AutoCloseable {

    /** What takes an object's bytes: nothing of it can be seen before it is finished. */
    interface Sink {
        /** Some more bytes; they may be changed afterwards. */
        void write(byte[] bytes, int start, int length) throws IOException;

        /** The object is there, whole. */
        void finish() throws IOException;

        /** It is not, and nothing that was sent for it stays; harmless where it was finished. */
        void abandon() throws IOException;
    }

    /** A new object of at most that many bytes. */
    Sink create(String key, long bytesMax) throws IOException;

    /** A range that the object has; fewer bytes where it is shorter. */
    byte[] read(String key, int start, int length) throws IOException;

    /** All of an object; one that is longer than allowed is refused. */
    byte[] readWhole(String key, int bytesMax) throws IOException;

    /** In that order; that one is not there is success. */
    void delete(List<String> keys) throws IOException;

    @Override
    void close();
}
