// SPDX-License-Identifier: Apache-2.0

using System;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Threading;

/// <summary>
/// A job in C#: threads call NCCL by P/Invoke, the garbage collector stops threads by signals, and the run time
/// turns SIGSEGV into exceptions.
/// </summary>
public static class Odd {
  const int Float = 7, Sum = 0;

  [StructLayout(LayoutKind.Sequential, Size = 128)]
  struct UniqueId {}

  [DllImport("libnccl.so.2")]
  static extern int ncclGetUniqueId(out UniqueId id);
  [DllImport("libnccl.so.2")]
  static extern int ncclCommInitRank(out IntPtr comm, int ranks, UniqueId id, int rank);
  [DllImport("libnccl.so.2")]
  static extern int ncclAllReduce(IntPtr from, IntPtr to, UIntPtr count, int type, int op, IntPtr comm, IntPtr stream);
  [DllImport("libnccl.so.2")]
  static extern int ncclCommDestroy(IntPtr comm);

  class Node {
    public int Value;
  }

  static int Work() {
    UniqueId id;
    IntPtr comm;
    if (ncclGetUniqueId(out id) != 0 || ncclCommInitRank(out comm, 2, id, 0) != 0) return 0;
    for (int i = 0; i < 500; ++i) {
      if (ncclAllReduce(IntPtr.Zero, IntPtr.Zero, (UIntPtr) 8, Float, Sum, comm, IntPtr.Zero) != 0) return 0;
    }
    return ncclCommDestroy(comm) == 0 ? 1 : 0;
  }

  static int WorkOfThreads() {
    var results = new int[16];
    var threads = new Thread[results.Length];
    for (int i = 0; i < threads.Length; ++i) {
      int at = i;
      threads[i] = new Thread(() => results[at] = Work());
      threads[i].Start();
    }
    int sum = 0;
    for (int i = 0; i < threads.Length; ++i) {
      GC.Collect();
      threads[i].Join();
      sum += results[i];
    }
    return sum;
  }

  static int CatchNullReferences() {
    int caught = 0;
    for (int i = 0; i < 2000; ++i) {
      Node node = i % 2 == 0 ? null : new Node();
      try {
        node.Value = i;
      } catch (NullReferenceException) {
        ++caught;
      }
    }
    return caught;
  }

  public static int Main() {
    Console.WriteLine("worked: " + WorkOfThreads());
    Console.WriteLine("null references: " + CatchNullReferences());
    using (Process child = Process.Start(new ProcessStartInfo("/bin/echo", "a child") { UseShellExecute = false })) {
      child.WaitForExit();
    }
    AppDomain.CurrentDomain.ProcessExit += (sender, data) => Console.WriteLine("at exit: " + Work());
    return 7;
  }
}
