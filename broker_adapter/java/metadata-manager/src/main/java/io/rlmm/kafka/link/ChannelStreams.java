package io.rlmm.kafka.link;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * A channel as two streams that know nothing of each other.
 *
 * <p>Those of the JDK share a lock in Java 17: while one thread waits for bytes, none can write.
 */
final class ChannelStreams {
    private ChannelStreams() { }

    static InputStream in(SocketChannel channel) {
        return new InputStream() {
            @Override
            public int read() throws IOException {
                byte[] one = new byte[1];
                return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
            }

            @Override
            public int read(byte[] bytes, int offset, int length) throws IOException {
                return length == 0 ? 0 : channel.read(ByteBuffer.wrap(bytes, offset, length));
            }
        };
    }

    static OutputStream out(SocketChannel channel) {
        return new OutputStream() {
            @Override
            public void write(int one) throws IOException {
                write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int offset, int length) throws IOException {
                for (ByteBuffer left = ByteBuffer.wrap(bytes, offset, length); left.hasRemaining();) {
                    channel.write(left);
                }
            }
        };
    }
}
