// SPDX-License-Identifier: Apache-2.0
// What lines of the logs of distributed training jobs mean: real lines, each with its row.
#include "cli/explanations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "base/read_file.h"

namespace rollcall {
namespace {

struct Case {
  const char* line;
  const char* id;
};

const Case kCases[] = {
    {"[rank0]:[E1218 20:27:21.426415540 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught "
     "collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=131072000, "
     "NumelOut=131072000, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.",
     "torch-watchdog-timeout"},
    {"  what():  [Rank 124] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12626, "
     "OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for 605485 milliseconds before timing out.",
     "torch-watchdog-timeout"},
    {"[rank0]:[E709 17:05:39.083402482 ProcessGroupNCCL.cpp:1899] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught "
     "collective operation timeout: WorkNCCL(SeqNum=20585, OpType=ALLREDUCE, NumelIn=1259621, "
     "NumelOut=1259621, Timeout(ms)=600000) ran for 600025 milliseconds before timing out.",
     "torch-watchdog-timeout"},
    {"[rank14]:[E709 17:05:38.162895613 ProcessGroupNCCL.cpp:2106] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 14]  failure detected by watchdog at work sequence id: 167 PG status: last enqueued "
     "work: 167, last completed work: 166",
     "torch-failure-detected"},
    {"[rank1]:[E1003 18:37:01.833600811 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 1] "
     "Exception (either an error or timeout) detected by watchdog at work: 6463, last enqueued "
     "NCCL work: 6463, last completed NCCL work: 6462.",
     "torch-failure-detected"},
    {"[rank1]:[E ProcessGroupNCCL.cpp:1540] [PG 1 Rank 1] Timeout at NCCL work: 7, last enqueued "
     "NCCL work: 8, last completed NCCL work: 6.",
     "torch-timeout-at-work"},
    {"[rank7]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 7] Timeout at NCCL work: 1, last enqueued "
     "NCCL work: 1, last completed NCCL work: 3452013982.",
     "torch-timeout-at-work"},
    {"[rank0]:[E709 17:05:38.482119928 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 0] Received a dump signal due to a collective timeout from this local rank and we will "
     "try our best to dump the debug info. Last enqueued NCCL work: 20589, last completed NCCL "
     "work: 20584.This is most likely caused by incorrect usages of collectives, e.g., wrong "
     "sizes used across ranks",
     "torch-dump-signal-local"},
    {"[rank6]:[E703 21:51:54.112142364 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 6] Received a dump signal due to a collective timeout from  rank 7 and we will try our "
     "best to dump the debug info. Last enqueued NCCL work: 56116, last completed NCCL work: "
     "56116.This is most likely caused by incorrect usages of collectives",
     "torch-dump-signal"},
    {"[rank5]:[E703 15:37:17.178116623 ProcessGroupNCCL.cpp:1922] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 5] Observed flight recorder dump signal from another rank via TCPStore.",
     "torch-dump-observed"},
    {"[rank0]:[E709 17:05:38.162871203 ProcessGroupNCCL.cpp:670] Stack trace of the failed "
     "collective not found, potentially because FlightRecorder is disabled. You can enable it by "
     "setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
     "torch-no-stack-trace"},
    {"[rank3]:[E1111 17:10:53.613614120 ProcessGroupNCCL.cpp:1551] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in "
     "monitoring enqueued collectives. This typically indicates a NCCL/CUDA API (e.g., "
     "CudaEventDestroy) hang blocking the watchdog",
     "torch-watchdog-stuck"},
    {"[rank2]:[E709 17:05:54.081690629 ProcessGroupNCCL.cpp:1760] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 2] Could not acquire GIL within 300 ms on exit, possible GIL induced hang",
     "torch-gil"},
    {"[rank3]:[F1104 09:12:44.911201431 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 3] Terminating the process after attempting to dump debug info, due to "
     "ProcessGroupNCCL watchdog hang.",
     "torch-ends-after-dump"},
    {"[rank6]:[E628 09:54:15.885613614 ProcessGroupNCCL.cpp:818] [Rank 6] Some NCCL operations "
     "have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU "
     "operations might run on corrupted/incomplete data.",
     "torch-operations-failed"},
    {"[rank6]:[E628 09:54:15.885638456 ProcessGroupNCCL.cpp:832] [Rank 6] To avoid data "
     "inconsistency, we are taking the entire process down.",
     "torch-takes-process-down"},
    {"[rank1]:[W522 11:47:46.952883182 ProcessGroupNCCL.cpp:1659] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 1] Failed to check the \"should dump\" flag on TCPStore, (maybe TCPStore server has "
     "shut down too early), with error: failed to recv, got 0 bytes",
     "torch-dump-flag-unreadable"},
    {"[E ProcessGroupNCCL.cpp:541] [Rank 3] Work WorkNCCL(SeqNum=12, OpType=ALLREDUCE, "
     "NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) timed out in blocking wait "
     "(NCCL_BLOCKING_WAIT=1).",
     "torch-blocking-wait"},
    {"[rank3]:[E1104 11:02:11.100200300 ProcessGroupNCCL.cpp:720] [PG ID 1 PG GUID 2 Rank 3] Work "
     "WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
     "Timeout(ms)=600000) timed out in blocking wait.",
     "torch-blocking-wait"},
    {"RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=18, OpType=ALLREDUCE, TensorShape=[4], "
     "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, "
     "layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), "
     "memory_format=(nullopt))), but Rank 1 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=22OpType=BARRIER).",
     "torch-collective-mismatch"},
    {"RuntimeError: Rank 1 failed to pass monitoredBarrier in 2000 ms", "torch-monitored-barrier"},
    {"[E ProcessGroupGloo.cpp:138] [Rank 0]: Ranks 1, 2 failed to pass monitoredBarrier in 30000 "
     "ms",
     "torch-monitored-barrier"},
    {"[rank7]:[W1114 10:05:22.500365145 ProcessGroupNCCL.cpp:5059] [PG ID 0 PG GUID 0 Rank 7]  "
     "using GPU 7 as device used by this process is currently unknown. This can potentially cause "
     "a hang if this rank to GPU mapping is incorrect. You can specify device_id in "
     "init_process_group() to force use of a particular device.",
     "torch-device-unknown"},
    {"[I ProcessGroupNCCL.cpp:2780] Rank 1 using GPU 1 to perform barrier as devices used by this "
     "process are currently unknown. This can potentially cause a hang if this rank to GPU "
     "mapping is incorrect.Specify device_ids in barrier() to force use of a particular device.",
     "torch-device-unknown"},
    {"[rank0]:[W604 08:55:15.856186408 ProcessGroupNCCL.cpp:1496] Warning: WARNING: "
     "destroy_process_group() was not called before program exit, which can leak resources. For "
     "more info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function "
     "operator())",
     "torch-no-destroy"},
    {"RuntimeError: DDP expects same model across all ranks, but Rank 1 has 338 params, while "
     "rank 0 has inconsistent 0 params.",
     "ddp-parameter-count"},
    {"RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
     "new one. This error indicates that your module has parameters that were not used in "
     "producing loss.",
     "ddp-unfinished-reduction"},
    {"[rank3]: torch.distributed.DistStoreError: wait timeout after 600000ms, keys: "
     "/default_pg/0//cuda//0",
     "store-wait-timeout"},
    {"torch.distributed.DistStoreError: Socket Timeout", "store-socket-timeout"},
    {"[E728 15:01:59.561275187 socket.cpp:1028] [c10d] The client socket has timed out after "
     "600000ms while trying to connect to (127.0.0.1, 48315).",
     "store-connect-timeout"},
    {"[E socket.cpp:922] [c10d] The client socket has timed out after 1800s while trying to "
     "connect to (10.0.3.17, 29500).",
     "store-connect-timeout"},
    {"RuntimeError: The server socket has failed to listen on any local network address. The "
     "server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use). The "
     "server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address already in use).",
     "store-port-taken"},
    {"torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
     "network address. port: 29700, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
     "already in use",
     "store-port-taken"},
    {"[rank7]:[W1120 01:13:20.886560089 TCPStore.cpp:125] [c10d] recvValue failed on "
     "SocketImpl(fd=81, addr=[node-8]:51546, remote=[node-8]:55903): Connection reset by peer",
     "store-receive-failed"},
    {"[W304 19:44:41.898456436 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=73, "
     "addr=localhost:46764, remote=localhost:29500): Failed to recv, got 0 bytes. Connection was "
     "likely closed. Did the remote server shutdown or crash?",
     "store-receive-failed"},
    {"[rank5]:[W509 02:29:39.495163912 TCPStore.cpp:106] [c10d] sendBytes failed on "
     "SocketImpl(fd=122, addr=[localhost]:38184, remote=[localhost]:8875): Broken pipe",
     "store-send-failed"},
    {"torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 15/16 "
     "clients joined.",
     "store-clients-missing"},
    {"RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for "
     "key: store_based_barrier_key:1 (world_size=8, worker_count=1, timeout=0:30:00)",
     "store-barrier-timeout"},
    {"INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize "
     "process group for rank: 3, key: store_based_barrier_key:13 (world_size=4, worker_count=2, "
     "timeout=0:30:00)",
     "store-barrier-waiting"},
    {"torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", "rendezvous-timeout"},
    {"  exitcode  : -9 (pid: 12345)", "elastic-killed"},
    {"E0417 23:50:34.065000 12551 torch/distributed/elastic/multiprocessing/api.py:984] failed "
     "(exitcode: -9) local_rank: 3 (pid: 12567) of binary: /usr/bin/python3",
     "elastic-killed"},
    {"  exitcode  : -11 (pid: 20311)", "elastic-segfault"},
    {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -11) local_rank: 0 "
     "(pid: 20311) of binary: /opt/conda/bin/python",
     "elastic-segfault"},
    {"  exitcode  : -6 (pid: 41877)", "elastic-aborted"},
    {"E0703 15:39:11.004000 881 torch/distributed/elastic/multiprocessing/api.py:869] failed "
     "(exitcode: -6) local_rank: 0 (pid: 902) of binary: /usr/bin/python",
     "elastic-aborted"},
    {"  exitcode  : -7 (pid: 713)", "elastic-bus-error"},
    {"  exitcode  : -15 (pid: 1190)", "elastic-terminated"},
    {"  traceback : Signal 9 (SIGKILL) received by PID 12345", "elastic-signal"},
    {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "elastic-child-failed"},
    {"W0407 10:13:23.913000 2651 torch/distributed/elastic/multiprocessing/api.py:1010] Sending "
     "process 2657 closing signal SIGTERM",
     "elastic-closing-signal"},
    {"W0616 00:37:22.830000 4015698 torch/distributed/elastic/agent/server/api.py:719] Received "
     "Signals.SIGTERM death signal, shutting down workers",
     "elastic-death-signal"},
    {"WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down "
     "workers",
     "elastic-death-signal"},
    {"[rank: 2] Child process with PID 13117 terminated with code -6. Forcefully terminating all "
     "other processes to avoid zombies 🧟",
     "lightning-child-terminated"},
    {"[2024-03-05 11:02:17,316] [ERROR] [launch.py:321:sigkill_handler] ['/opt/conda/bin/python', "
     "'-u', 'train.py', '--local_rank=7', '--deepspeed', 'ds.json'] exits with return code = -9",
     "deepspeed-killed"},
    {"[2024-03-05 11:02:17,316] [ERROR] [launch.py:321:sigkill_handler] ['/opt/conda/bin/python', "
     "'-u', 'train.py', '--local_rank=7'] exits with return code = 1",
     "deepspeed-return-code"},
    {"mpirun noticed that process rank 14 with PID 4257 on node compute-0-2 exited on signal 11 "
     "(Segmentation fault).",
     "mpirun-process-ended"},
    {"MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "mpi-abort"},
    {"Detected kernel version 5.4.0, which is below the recommended minimum of 5.5.0; this can "
     "cause the process to hang. It is recommended to upgrade the kernel to the minimum version "
     "or higher.",
     "accelerate-old-kernel"},
    {"slurmstepd: error: *** JOB 21428186 ON nid005216 CANCELLED AT 2026-01-14T03:20:11 DUE TO "
     "TIME LIMIT ***",
     "slurm-time-limit"},
    {"slurmstepd: error: *** STEP 5120.0 ON node017 CANCELLED AT 2026-02-02T10:00:01 DUE TO NODE "
     "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
     "slurm-node-failure"},
    {"slurmstepd: error: *** JOB 88121 ON gpu-a-07 CANCELLED AT 2026-02-02T10:00:01 DUE TO "
     "PREEMPTION ***",
     "slurm-preempted"},
    {"slurmstepd: error: *** STEP 90417.0 ON node003 CANCELLED AT 2026-03-01T08:12:44 DUE to "
     "SIGNAL Terminated ***",
     "slurm-signal"},
    {"slurmstepd: error: Detected 1 oom_kill event in StepId=36358.0. Some of the step tasks have "
     "been OOM Killed.",
     "slurm-out-of-memory"},
    {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=36358.batch cgroup. Some of your "
     "processes may have been killed by the cgroup out-of-memory handler.",
     "slurm-out-of-memory"},
    {"srun: error: node004: task 13: Exited with exit code 1", "srun-task-failed"},
    {"srun: error: gpu-b-12: task 3: Killed", "srun-task-killed"},
    {"srun: error: frontier07210: task 13: Aborted (core dumped)", "srun-task-aborted"},
    {"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
     "srun-step-aborted"},
    {"[1234567.890123] NVRM: Xid (PCI:0000:06:00): 79, pid=4121, name=python, GPU has fallen off "
     "the bus.",
     "gpu-fell-off-bus"},
    {"Nov 24 10:13:37 node-17 kernel: [437.179] NVRM: Xid (PCI:0000:3b:00): 31, pid=12034, "
     "name=python, Ch 00000009, MMU Fault: ENGINE GRAPHICS faulted @ 0x7f2a_00000000.",
     "gpu-xid"},
    {"RuntimeError: CUDA error: uncorrectable ECC error encountered", "cuda-ecc"},
    {"[rank0]:[E1003 18:37:01.833621509 ProcessGroupNCCL.cpp:1595] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal "
     "memory access was encountered",
     "cuda-illegal-access"},
    {"node-3:811:902 [2] transport/net.cc:1180 NCCL WARN Cuda failure 'an illegal memory access "
     "was encountered'",
     "cuda-illegal-access"},
    {"RuntimeError: CUDA error: device-side assert triggered", "cuda-assert"},
    {"torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
     "cuda-busy"},
    {"[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.91 GiB. GPU 0 has "
     "a total capacity of 39.56 GiB of which 212.81 MiB is free.",
     "cuda-out-of-memory"},
    {"CUDA kernel errors might be asynchronously reported at some other API call, so the "
     "stacktrace below might be incorrect.",
     "cuda-asynchronous"},
    {"node-17:4121:4130 [3] transport/net_ib.cc:2458 NCCL WARN NET/IB: Got completion from peer "
     "10.0.1.5<45678> with status=12 opcode=0 len=0 vendor err 129 (Send) localGid "
     "::ffff:10.0.1.4 remoteGids::ffff:10.0.1.5 hca mlx5_0",
     "nccl-ib-retry-12"},
    {"[2026-06-20 10:00:01] node-17:4121:4130 [3] p2p.cc:688 NCCL WARN NET/IB: Got completion "
     "from peer 10.0.1.5<45678> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) "
     "vendor_err=129  hca mlx5_0",
     "nccl-ib-retry-exceeded"},
    {"node-17:4121:4130 [3] transport/net_ib.cc:2458 NCCL WARN NET/IB: Got completion from peer "
     "10.0.1.5<45678> with status=5 opcode=32601 len=32600 vendor err 249 (Recv) hca mlx5_0",
     "nccl-ib-completion"},
    {"node-9:1201:1377 [0] transport/net_ib.cc:168 NCCL WARN NET/IB : mlx5_3:1 async fatal event: "
     "local catastrophic error",
     "nccl-ib-fatal-event"},
    {"node-9:1201:1377 [0] transport/net_ib.cc:101 NCCL WARN NET/IB : mlx5_3:1 Got async event : "
     "port error",
     "nccl-ib-event"},
    {"[2026-06-20 10:00:01] node-9:1201:1377 [0] common.cc:179 NCCL WARN NET/IB : mlx5_3:1 Got "
     "non-fatal async event: port error(10)",
     "nccl-ib-event"},
    {"node-2:700:811 [1] transport/net_ib.cc:2144 NCCL WARN NET/IB : req 0/1 tag 1 peer "
     "10.0.0.5<40001> posted incorrect receive info: size 4096 addr 0 rkeys[0]=0",
     "nccl-ib-receive-info"},
    {"node-17:4121:4130 [3] transport/net_ib.cc:1081 NCCL WARN NET/IB : req 0/1 tag 0 peer "
     "10.0.0.5<40001> collective mismatch error, local size 4096 remote size 1024",
     "nccl-ib-collective-mismatch"},
    {"node-2:700:811 [1] transport/net_socket.cc:561 NCCL WARN NET/Socket : peer 10.0.0.5<40001> "
     "message truncated : receiving 1048576 bytes instead of 65536. If you believe your socket "
     "network is in a healthy state, there may be a mismatch in collective sizes or environment "
     "settings (e.g. NCCL_PROTO, NCCL_ALGO) between ranks",
     "nccl-socket-truncated"},
    {"node-2:700:700 [1] bootstrap.cc:212 NCCL WARN Message truncated : received 1024 bytes "
     "instead of 256",
     "nccl-bootstrap-truncated"},
    {"node-2:700:811 [1] misc/socket.cc:578 NCCL WARN socketPollConnect: connect to "
     "10.0.0.5<43211> returned Connection refused, exceeded error retry count after 35 attempts",
     "nccl-connect-retries"},
    {"node-2:700:811 [1] NCCL INFO socketPollConnect: connect to 10.0.0.5<43211> returned "
     "Connection timed out, retrying (3/34) after sleep for 300 msec",
     "nccl-connect-retrying"},
    {"node-2:700:811 [1] NCCL INFO Call to connect returned Connection refused, retrying",
     "nccl-connect-refused"},
    {"node-2:700:811 [1] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to "
     "172.17.0.1<43211> failed : No route to host",
     "nccl-connect-failed"},
    {"node-2:700:811 [1] misc/socket.cc:71 NCCL WARN socketProgress: Connection closed by remote "
     "peer node-3.cluster.local<52770>",
     "nccl-connection-closed"},
    {"[E ProcessGroupNCCL.cpp:852] [Rank 16] NCCL watchdog thread terminated with exception: NCCL "
     "error: remote process exited or there was a network error, NCCL version 2.19.3",
     "nccl-remote-error"},
    {"torch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled system error (run with "
     "NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
     "nccl-system-error"},
    {"RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, "
     "unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.14.3",
     "nccl-cuda-error"},
    {"RuntimeError: NCCL Error 3: internal error - please report this issue to the NCCL developers",
     "nccl-internal-error"},
    {"node-3:811:902 [2] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'",
     "nccl-cuda-failure"},
    {"node-3:811:902 [2] enqueue.cc:1450 NCCL WARN Cuda failure 'unspecified launch failure'",
     "nccl-cuda-failure"},
    {"node-3:1583:1585 [0] init.cc:737 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both "
     "on CUDA device 1000",
     "nccl-duplicate-gpu"},
    {"node-3:1583:1585 [0] init.cc:729 NCCL WARN Mismatched NCCL version detected : rank 1 "
     "version 22005 rank 0 version 21805",
     "nccl-version-mismatch"},
    {"node-3:811:902 [2] misc/shmutils.cc:87 NCCL WARN Error: failed to extend "
     "/dev/shm/nccl-fnm1Zl to 9637892 bytes, error: No space left on device (28)",
     "nccl-shm-extend"},
    {"node-3:811:902 [2] misc/shmutils.cc:128 NCCL WARN Error while creating shared memory "
     "segment /dev/shm/nccl-fnm1Zl (size 9637888), error: No space left on device (28)",
     "nccl-shm-segment"},
    {"node-3:811:902 [2] misc/shmutils.cc:128 NCCL WARN Error while attaching to shared memory "
     "segment /dev/shm/nccl-fnm1Zl (size 9637888), error: No such file or directory (2)",
     "nccl-shm-segment"},
    {"node-3:811:811 [2] bootstrap.cc:115 NCCL WARN Bootstrap : no socket interface found",
     "nccl-no-interface"},
    {"node-3:811:902 [2] strongstream.cc:337 NCCL WARN Fatal: host threads racing to launch NCCL "
     "on same device.",
     "nccl-launch-race"},
    {"torch.distributed.DistBackendError: NCCL communicator was aborted on rank 2.",
     "nccl-communicator-aborted"},
    {"  Communicator ranks have different AllReduce operation counts", "ras-operation-counts"},
    {"  Missing communicator data from 1 job process", "ras-missing-data"},
    {"  Missing communicator data from 3 ranks", "ras-missing-data"},
    {"  1 job process is considered dead (unreachable via the RAS network)", "ras-dead"},
    {"[rank3]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
     "Timed out waiting 1800000ms for recv operation to complete",
     "gloo-timeout"},
    {"RuntimeError: [gloo/transport/tcp/pair.cc:598] Connection closed by peer "
     "[2401:db00:eef0:1100:3560:0:1c05:25d]:8594",
     "gloo-connection-closed"},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
     "shared memory (shm).",
     "dataloader-bus-error"},
    {"RuntimeError: DataLoader worker (pid 50440) is killed by signal: Killed. ",
     "dataloader-killed"},
    {"RuntimeError: DataLoader worker (pid(s) 17837) exited unexpectedly", "dataloader-exited"},
    {"RuntimeError: unable to write to file </torch_287_2714559211_8>: No space left on device "
     "(28)",
     "torch-shm-full"},
    {"(EngineCore_DP0 pid=333) INFO 02-22 23:21:42 [shm_broadcast.py:548] No available shared "
     "memory broadcast block found in 60 seconds. This typically happens when some processes are "
     "hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).",
     "vllm-no-broadcast-block"},
    {"(EngineCore_DP0 pid=395) ERROR 07-12 09:17:33 [core.py:710] TimeoutError: RPC call to "
     "sample_tokens timed out.",
     "vllm-rpc-timeout"},
    {"(EngineCore_DP0 pid=2651) ERROR 06-11 11:46:39 [multiproc_executor.py:140] Worker proc "
     "VllmWorker-3 died unexpectedly, shutting down executor.",
     "vllm-worker-died"},
    {"(EngineCore_0 pid=2651) ERROR 06-11 11:46:39 [core.py:517] EngineCore encountered a fatal "
     "error.",
     "vllm-engine-fatal"},
    {"[2025-04-03 20:06:34 DP1 TP0] Watchdog timeout (self.watchdog_timeout=300)",
     "sglang-watchdog"},
    {"[2026-03-27 20:52:54 TP2] Scheduler watchdog timeout (self.watchdog_timeout=300, "
     "self.soft=False)",
     "sglang-watchdog"},
    {"ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
     "ray-actor-died"},
    {"(raylet) A worker died or was killed while executing a task by an unexpected system error. "
     "To troubleshoot the problem, check the logs for the dead worker.",
     "ray-worker-died"},
    {"[84211.113200] Memory cgroup out of memory: Killed process 12345 (python) "
     "total-vm:98214344kB, anon-rss:65511204kB, file-rss:102400kB, shmem-rss:204800kB, UID:1000 "
     "pgtables:140000kB oom_score_adj:0",
     "kernel-cgroup-oom"},
    {"[84211.113200] Out of memory: Killed process 12345 (python) total-vm:98214344kB, "
     "anon-rss:65511204kB, file-rss:102400kB, shmem-rss:204800kB, UID:1000 pgtables:140000kB "
     "oom_score_adj:0",
     "kernel-oom"},
    {"[ 3625.109218] INFO: task python:20311 blocked for more than 122 seconds.",
     "kernel-hung-task"},
    {"[  207.955868] nfs: server 10.100.0.60 not responding, still trying", "kernel-nfs"},
    {"[rank4]:[E703 15:37:17.178360488 ProcessGroupNCCL.cpp:1899] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 4] Process group watchdog thread terminated with exception: CUDA error: unspecified "
     "launch failure",
     "torch-watchdog-thread-ended"},
    {"terminate called after throwing an instance of 'c10::DistBackendError'", "cpp-terminate"},
    {"terminate called after throwing an instance of 'std::runtime_error'", "cpp-terminate"},
    {"Fatal Python error: Segmentation fault", "python-fatal"},
};

// Lines of jobs that run well.
const char* const kHealthy[] = {
    "",
    "node-1:7614:7691 [0] NCCL INFO comm 0x573f9cb382e0 rank 0 nRanks 2 nNodes 2 localRanks 1 "
    "localRank 0 MNNVL 0",
    "node-1:7614:7691 [0] NCCL INFO ncclCommInitRank comm 0x55c4c398fed0 rank 0 nranks 8 cudaDev "
    "0 nvmlDev 0 busId 1e0 commId 0x957c4f4bad7eaafa - Init COMPLETE",
    "node-1:7614:7691 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.4<0>",
    "node-1:7614:7691 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
    "node-1:7614:7691 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.4<0>",
    "node-1:7614:7691 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)",
    "node-1:7614:7691 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0(0)/GDRDMA",
    "node-1:7614:7691 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
    "node-1:7614:7691 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1",
    "node-1:7614:7691 [0] NCCL INFO Connected all rings",
    "node-1:7614:7691 [0] NCCL INFO Bootstrap timings total 0.001249 (create 0.000031, send "
    "0.000262, recv 0.000439, ring 0.000280, delay 0.000000)",
    "node-1:7614:7691 [0] NCCL INFO 32 coll channels, 32 p2p channels, 32 p2p channels per peer",
    "node-1:7614:7702 [0] NCCL INFO Allocated 4194660 bytes of shared memory in "
    "/dev/shm/nccl-tgfkxF",
    "node-1:7614:7614 [0] NCCL INFO comm 0x564d4af51740 rank 0 nranks 8 cudaDev 0 busId 170 - "
    "Destroy COMPLETE",
    "NCCL version 2.27.7+cuda12.9",
    "epoch 0: loss 0.138725",
    "Epoch 3/9 :  69%|######9   | 2314/3351 [12:09<05:25,  3.18it/s, v_num=0, train_loss=0.412]",
    "iteration      812/   10000 | consumed samples: 207872 | elapsed time per iteration (ms): "
    "1523.4 | learning rate: 9.0E-05 | global batch size: 256 | lm loss: 2.314 | grad norm: 0.81",
    "{'loss': 1.2731, 'grad_norm': 0.9, 'learning_rate': 1.9e-05, 'epoch': 0.35}",
    "W0616 00:31:20.100000 4015698 torch/distributed/run.py:792] "
    "*****************************************",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid "
    "your system being overloaded, please further tune the variable for optimal performance in "
    "your application as needed.",
    "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:",
    "  rdzv_backend     : c10d",
    "INFO:torch.distributed.elastic.agent.server.api:[default] Rendezvous complete for workers. "
    "Result:",
    "INFO:torch.distributed.elastic.multiprocessing.api:All workers finished successfully.",
    "[rank0]:[I1218 20:17:20.426415540 ProcessGroupNCCL.cpp:980] [PG ID 0 PG GUID 0(default_pg) "
    "Rank 0] ProcessGroupNCCL initialization options: size: 8, global rank: 0, TIMEOUT(ms): "
    "600000, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: 0, PG Name: 0",
    "[rank0]:[I1218 20:17:20.426425540 ProcessGroupNCCL.cpp:880] [PG ID 0 PG GUID 0(default_pg) "
    "Rank 0] HeartbeatMonitor environments: TORCH_NCCL_ENABLE_MONITORING (Whether to kill program "
    "when no watchdog heartbeat detected): 1, TORCH_NCCL_DUMP_ON_TIMEOUT: 1, "
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC: 15000, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 480, "
    "TORCH_NCCL_COORD_CHECK_MILSEC: 1000",
    "[rank0]:[I1218 21:17:20.426425540 ProcessGroupNCCL.cpp:1990] [PG ID 0 PG GUID 0(default_pg) "
    "Rank 0] ProcessGroupNCCL watchdog thread joined.",
    "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2",
    "distributed_backend=nccl",
    "[2024-03-05 10:02:17,316] [INFO] [comm.py:637:init_distributed] cdb=None",
    "[2024-03-05 12:02:17,316] [INFO] [launch.py:347:main] Process 4121 exits successfully.",
    "(EngineCore_DP0 pid=333) INFO 02-22 23:20:09 [backends.py:350] Cache the graph of compile "
    "range (1, 32768) for later use",
    "[2025-04-03 19:59:12 DP1 TP0] Decode batch. #running-req: 12, #token: 4121, token usage: "
    "0.01, gen throughput (token/s): 812.3, #queue-req: 0",
    "(raylet) Worker process 4121 was started with token 3.",
    "[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7",
    "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:624: UserWarning: "
    "This DataLoader will create 16 worker processes in total.",
    "slurmstepd: task_p_pre_launch: Using sched_affinity for tasks",
    "srun: job 21428186 has been allocated resources",
    "[  207.955868] nfs: server 10.100.0.60 OK",
    "rank 3: exitcode 0, saved checkpoint: step -900",
    "rank 3: done",
};

std::string IdOf(std::string_view line) {
  const Explanation* row = FindExplanation(line);
  return row == nullptr ? "" : row->id;
}

TEST(ExplanationsTest, EachLineFindsItsRow) {
  for (const Case& c : kCases) EXPECT_EQ(IdOf(c.line), c.id) << c.line;
}

TEST(ExplanationsTest, EachRowHasALine) {
  std::set<std::string> tried;
  for (const Case& c : kCases) tried.insert(c.id);
  for (const Explanation& row : Explanations()) EXPECT_EQ(tried.count(row.id), 1u) << row.id;
  EXPECT_EQ(tried.size(), Explanations().size());
}

TEST(ExplanationsTest, LinesOfAHealthyJobHaveNoRow) {
  for (const char* line : kHealthy) EXPECT_EQ(IdOf(line), "") << line;
}

TEST(ExplanationsTest, IdsAreUnique) {
  std::set<std::string> ids;
  for (const Explanation& row : Explanations()) EXPECT_TRUE(ids.insert(row.id).second) << row.id;
}

TEST(ExplanationsTest, NoFieldIsEmptyOrTooLong) {
  for (const Explanation& row : Explanations()) {
    EXPECT_STRNE(row.id, "");
    EXPECT_STRNE(row.texts[0], "") << row.id;
    EXPECT_STRNE(row.means, "") << row.id;
    EXPECT_STRNE(row.run, "") << row.id;
    EXPECT_STRNE(row.source, "") << row.id;
    for (const char* field : {row.means, row.beware, row.run}) {
      EXPECT_LE(std::strlen(field), 300u) << row.id << ": " << field;
    }
  }
}

TEST(ExplanationsTest, EmptyTextsAreAtTheEnd) {
  for (const Explanation& row : Explanations()) {
    EXPECT_TRUE(std::is_partitioned(std::begin(row.texts), std::end(row.texts),
                                    [](const char* text) { return *text != '\0'; }))
        << row.id;
  }
}

TEST(ExplanationsTest, TheCaseOfLettersDoesNotCount) {
  EXPECT_EQ(IdOf("NCCL watchdog: WATCHDOG CAUGHT COLLECTIVE OPERATION TIMEOUT"),
            "torch-watchdog-timeout");
}

TEST(ExplanationsTest, TheOrderOfTheTextsCounts) {
  EXPECT_EQ(IdOf("keys: 0; wait timeout after 300000 steps, ms"), "");
  EXPECT_EQ(IdOf("wait timeout after 300000ms, keys: 0"), "store-wait-timeout");
}

TEST(ExplanationsTest, TheFirstRowThatMatchesCounts) {
  EXPECT_EQ(IdOf("NCCL watchdog thread terminated with exception: Watchdog caught collective "
                 "operation timeout"),
            "torch-watchdog-timeout");
}

TEST(ExplanationsTest, OnlyTheFirst64KiBOfALineCount) {
  constexpr std::string_view kText = "Watchdog caught collective operation timeout";
  const size_t limit = size_t{64} << 10;
  EXPECT_EQ(IdOf(std::string(limit - kText.size(), ' ').append(kText)), "torch-watchdog-timeout");
  EXPECT_EQ(IdOf(std::string(limit - kText.size() + 1, ' ').append(kText)), "");
}

TEST(ExplanationsTest, AnyBytesAreALine) {
  EXPECT_EQ(IdOf(std::string_view()), "");
  EXPECT_EQ(IdOf(std::string_view("\0\xff\n", 3)), "");
}

std::string Document() {
  std::string text =
      "# Lines of logs\n\nWhat well-known lines in the logs of training jobs mean: the table of "
      "`rollcall explain`. `ROLLCALL_WRITE_DOCS=1 cli_library_test` generates this page from "
      "`cli/explanations.cc`.\n";
  for (const Explanation& row : Explanations()) {
    text += std::string("\n## ") + row.id + "\n\n*The line:* `";
    for (const char* part : row.texts) {
      if (*part != '\0') text += (part == row.texts[0] ? "" : " ... ") + std::string(part);
    }
    text += std::string("`\n\n") + row.means + "\n\n";
    if (*row.beware != '\0') text += std::string("*Beware:* ") + row.beware + "\n\n";
    text += std::string("**Next:** ") + row.run + "\n\n*Source:* " + row.source + "\n";
  }
  return text;
}

TEST(ExplanationsTest, TheDocumentationIsTheTable) {
  const std::string path = ROLLCALL_DOCS "/log_lines.md";
  if (std::getenv("ROLLCALL_WRITE_DOCS") != nullptr) std::ofstream(path) << Document();
  const std::string text = ReadFile(path).value_or("");
  EXPECT_EQ(text, Document()) << "run: ROLLCALL_WRITE_DOCS=1 cli_library_test";
}

}  // namespace
}  // namespace rollcall
