package rlmm.kafka;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

/**
 * Runs the main method of another class, and ends the process at once when standard input ends.
 *
 * <p>The test that starts a broker holds the other end of that pipe. When it dies, however it dies, the
 * pipe closes and no broker is left behind. Halting runs no shutdown hook, so a broker that hangs
 * in one ends all the same.
 */
public final class Leash {
    private static final int STATUS = 137;

    private Leash() {}

    public static void main(String[] args) throws Throwable {
        Thread watch = new Thread(Leash::haltWhenInputEnds, "leash");
        watch.setDaemon(true);
        watch.start();
        String[] rest = Arrays.copyOfRange(args, 1, args.length);
        try {
            Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) rest);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    private static void haltWhenInputEnds() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is ever said on this pipe; only its end means something.
            }
        } catch (IOException unreadable) {
            // As good as its end.
        }
        Runtime.getRuntime().halt(STATUS);
    }
}
