// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.List;

/**
 * A job in Java: threads call NCCL by JNI, and the virtual machine uses signals for null pointers, for its safe points
 * and for SIGQUIT.
 */
public final class Odd {
  static native int work();

  static class Node {
    int value;
  }

  public static void main(String[] arguments) throws Exception {
    System.load(arguments[0]);
    List<Thread> threads = new ArrayList<>();
    int[] results = new int[16];
    for (int i = 0; i < results.length; ++i) {
      int at = i;
      threads.add(new Thread(() -> results[at] = work()));
      threads.get(i).start();
    }
    int sum = 0;
    for (int i = 0; i < results.length; ++i) {
      threads.get(i).join();
      sum += results[i];
      System.gc();
    }
    System.out.println("worked: " + sum);
    int caught = 0;
    for (int i = 0; i < 20_000; ++i) {
      Node node = i % 2 == 0 ? null : new Node();
      try {
        node.value = i;
      } catch (NullPointerException error) {
        ++caught;
      }
    }
    System.out.println("null pointers: " + caught);
    Process child = new ProcessBuilder("/bin/echo", "a child").inheritIO().start();
    child.waitFor();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("at exit: " + work())));
    System.exit(7);
  }
}
