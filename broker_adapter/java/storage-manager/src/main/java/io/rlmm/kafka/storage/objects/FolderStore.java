package io.rlmm.kafka.storage.objects;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.UUID;

/**
 * A folder whose files are the objects. A file has its name when it is whole and on disk, not before;
 * until then it lies in a folder of its own, where our other programs look for unfinished ones.
 * Channels are used, which an interrupt ends.
 */
public final class FolderStore implements ObjectStore {
    /** Where our other programs look for what was left unfinished. */
    private static final String WRITING = ".rlmm-writing";

    /** At a time: for an array, a channel keeps as much memory outside the heap, for each thread. */
    private static final int PIECE_BYTES = 256 * 1024;

    private final Path root;

    /**
     * The folder has to be there, and is never made. Below a mount point it goes with its mount; a mount
     * point itself is a folder without its mount, too, and would be written to.
     */
    public FolderStore(Path root) {
        this.root = root.toAbsolutePath().normalize();
    }

    private Path path(String key) throws IOException {
        Path path = root.resolve(key).normalize();
        if (!path.startsWith(root) || path.equals(root)) {
            throw new IOException("the key " + key + " leads out of the folder");
        }
        return path;
    }

    @Override
    public Sink create(String key, long bytesMax) throws IOException {
        return new FileSink(root, key, path(key));
    }

    /** A folder that is gone has lost no segment, and nothing that is deleted. */
    private static void require(Path root) throws IOException {
        if (!Files.isDirectory(root)) {
            throw new TransientException("the folder " + root + " of the store is not there", null);
        }
    }

    /** Makes a folder below the root, one by one: the root itself must not come back where it was mounted. */
    private static void makeFolders(Path root, Path folder) throws IOException {
        require(root);
        if (folder.equals(root)) {
            return;
        }
        Path at = root;
        for (Path name : root.relativize(folder)) {
            at = at.resolve(name);
            try {
                Files.createDirectory(at);
            } catch (FileAlreadyExistsException error) {
                // As it should be.
            }
        }
    }

    private static final class FileSink implements Sink {
        private final Path root;
        private final Path path;
        private final Path folder;
        private final Path hidden;
        private final FileChannel channel;

        FileSink(Path root, String key, Path path) throws IOException {
            this.root = root;
            this.path = path;
            this.folder = root.resolve(WRITING).resolve(UUID.randomUUID().toString().replace("-", ""));
            this.hidden = folder.resolve(key);
            makeFolders(root, hidden.getParent());
            this.channel = FileChannel.open(hidden, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        }

        @Override
        public void write(byte[] bytes, int start, int length) throws IOException {
            ByteBuffer from = ByteBuffer.wrap(bytes, start, length);
            int end = from.limit();
            while (from.position() < end) {
                from.limit(Math.min(end, from.position() + PIECE_BYTES));
                channel.write(from);
            }
        }

        @Override
        public void finish() throws IOException {
            channel.force(true);
            channel.close();
            makeFolders(root, path.getParent());
            Files.move(hidden, path, StandardCopyOption.ATOMIC_MOVE);
            // Names outlast a power cut when the folders that have them are on disk.
            for (Path up = path.getParent(); up.startsWith(root); up = up.getParent()) {
                try (FileChannel names = FileChannel.open(up, StandardOpenOption.READ)) {
                    names.force(true);
                }
            }
            forget();
        }

        @Override
        public void abandon() throws IOException {
            channel.close();
            forget();
        }

        /** The unfinished file, with the folders that were made for it alone. */
        private void forget() throws IOException {
            Files.deleteIfExists(hidden);
            for (Path up = hidden.getParent(); up.startsWith(folder); up = up.getParent()) {
                Files.deleteIfExists(up);
            }
        }
    }

    @Override
    public byte[] read(String key, int start, int length) throws IOException {
        try (FileChannel channel = open(key)) {
            return bytes(channel, start, (int) Math.max(0, Math.min(length, channel.size() - start)));
        }
    }

    @Override
    public byte[] readWhole(String key, int bytesMax) throws IOException {
        try (FileChannel channel = open(key)) {
            if (channel.size() > bytesMax) {
                throw new IOException(key + ": " + channel.size() + " bytes, at most " + bytesMax + " are read");
            }
            return bytes(channel, 0, (int) channel.size());
        }
    }

    private FileChannel open(String key) throws IOException {
        try {
            return FileChannel.open(path(key), StandardOpenOption.READ);
        } catch (NoSuchFileException error) {
            require(root);
            throw new ObjectAbsentException(key, error);
        }
    }

    private static byte[] bytes(FileChannel channel, int start, int length) throws IOException {
        ByteBuffer into = ByteBuffer.allocate(length);
        while (into.position() < length) {
            into.limit(Math.min(length, into.position() + PIECE_BYTES));
            if (channel.read(into, (long) start + into.position()) < 0) {
                throw new EOFException("the file became shorter");
            }
        }
        return into.array();
    }

    /** Folders stay, as another writer may be writing into them. */
    @Override
    public void delete(List<String> keys) throws IOException {
        require(root);
        for (String key : keys) {
            Files.deleteIfExists(path(key));
        }
    }

    @Override
    public void close() { }
}
