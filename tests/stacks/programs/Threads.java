// SPDX-License-Identifier: Apache-2.0
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.Selector;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

public class Threads {
    interface Wait { void run() throws Exception; }

    static void start(String name, Wait wait) {
        Thread thread = new Thread(() -> {
            try {
                recurse(10, wait);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    static void recurse(int depth, Wait wait) throws Exception {
        if (depth == 0) wait.run(); else recurse(depth - 1, wait);
    }

    static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

    public static void main(String[] arguments) throws Exception {
        fibonacci(32);  // so that some code is compiled
        Object monitor = new Object();
        CountDownLatch latch = new CountDownLatch(1);
        ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Selector selector = Selector.open();
        start("sleep", () -> Thread.sleep(86400000L));
        start("park", () -> LockSupport.park());
        start("latch", () -> latch.await());
        start("monitor", () -> { synchronized (monitor) { monitor.wait(); } });
        start("accept", () -> socket.accept());
        start("select", () -> selector.select());
        Thread.sleep(1000);
        System.out.println("ready");
        System.in.read();
    }
}
