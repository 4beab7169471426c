// SPDX-License-Identifier: Apache-2.0
// Stacks of real programs (tests/standstill), and what they wait in.
#include "daemon/model/stand_kinds.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr StandKind kUnknown = StandKind::kUnknown;

struct StackCase {
  const char* name;
  const char* functions;  // innermost first
  const char* at;
  StandKind kind;
  const char* function;
  EndKind end = EndKind::kNone;
  const char* channel = "";
};

const StackCase kCases[] = {
    {"popen_wait",
     " wait4 PyObject_Vectorcall subprocess.Popen._try_wait subprocess.Popen._wait "
     "subprocess.Popen.wait pipes.pack ",
     "/x/pipes.py:48 in pack", StandKind::kChild, "Popen.wait", EndKind::kProcess, "do_wait"},
    {"join_of_multiprocessing",
     " wait4 popen_fork.Popen.poll popen_fork.Popen.wait process.BaseProcess.join workers.run ",
     "/x/workers.py:26 in run", StandKind::kChild, "BaseProcess.join"},
    {"semaphore_of_python",
     " __futex_abstimed_wait_common __new_sem_wait_slow64.constprop.0 workers.fill ",
     "/x/workers.py:102 in fill", StandKind::kSemaphore, "__new_sem_wait_slow64"},
    {"lock_of_multiprocessing",
     " __futex_abstimed_wait_common __new_sem_wait_slow64 synchronize.SemLock.__enter__ "
     "workers.run ",
     "/x/workers.py:50 in run", StandKind::kProcessLock, "SemLock.__enter__"},
    {"barrier_of_multiprocessing",
     " __new_sem_wait_slow64 synchronize.Condition.wait synchronize.Condition.wait_for "
     "threading.Barrier._wait threading.Barrier.wait workers.prepare ",
     "/x/workers.py:58 in prepare", StandKind::kBarrier, "Barrier.wait"},
    {"condition_of_multiprocessing",
     " __new_sem_wait_slow64 synchronize.Condition.wait workers.run ", "/x/workers.py:95 in run",
     StandKind::kProcessCondition, "Condition.wait"},
    {"backward_of_ddp",
     " __futex_abstimed_wait_common pthread_cond_wait c10d::Reducer::finalize_backward "
     "torch::autograd::Engine::execute_with_graph_task Tensor.backward train.run ",
     "/x/train.py:20 in run", StandKind::kTorch, "c10d::Reducer::finalize_backward"},
    {"receive_of_gloo", " pthread_cond_wait c10d::ProcessGroupGloo::RecvWork::wait train.run ",
     "/x/train.py:20 in run", StandKind::kGloo, "c10d::ProcessGroupGloo::RecvWork::wait"},
    {"pytorch_on_another_device",
     " futex aclrtSynchronizeStreamWithTimeout c10d::ProcessGroupHCCL::WorkHCCL::synchronize "
     "distributed_c10d.barrier train.run ",
     "/x/train.py:20 in run", StandKind::kTorchOnDevice, "distributed_c10d.barrier"},
    {"pytorch_on_a_backend_that_does_not_show",
     " futex pthread_cond_wait c10d::Work::wait distributed_c10d.all_reduce train.run ",
     "/x/train.py:20 in run", StandKind::kTorch, "distributed_c10d.all_reduce"},
    {"pytorch_on_gloo",
     " futex pthread_cond_wait c10d::ProcessGroupGloo::RecvWork::wait distributed_c10d.recv "
     "train.run ",
     "/x/train.py:20 in run", StandKind::kGloo, "distributed_c10d.recv"},
    {"step_on_another_device", " futex aclrtSynchronizeDevice train.run ", "/x/train.py:30 in run",
     StandKind::kGpu, "aclrtSynchronizeDevice"},
    {"step_on_level_zero", " sched_yield zeEventHostSynchronize train.run ",
     "/x/train.py:30 in run", StandKind::kGpu, "zeEventHostSynchronize"},
    {"pytorch_on_nccl",
     " cudaStreamSynchronize c10d::ProcessGroupNCCL::WorkNCCL::synchronize "
     "distributed_c10d.barrier train.run ",
     "/x/train.py:20 in run", StandKind::kNccl, "distributed_c10d.barrier"},
    {"creation_of_a_communicator_of_nccl",
     " poll ncclCommInitRankConfig c10d::NCCLComm::create c10d::Work::wait "
     "distributed_c10d.all_reduce train.run ",
     "/x/train.py:20 in run", StandKind::kNccl, "distributed_c10d.all_reduce"},
    {"loss_from_the_gpu", " cuMemcpyDtoHAsync_v2 cudaMemcpyAsync train.run ",
     "/x/train.py:30 in run", StandKind::kGpu, "cudaMemcpyAsync"},
    {"queue_of_threads",
     " __new_sem_wait_slow64 threading.Condition.wait queue.Queue.get train.run ",
     "/x/train.py:63 in run", StandKind::kQueue, "Queue.get"},
    {"queue_of_a_manager",
     " read connection.Connection._recv connection.Connection._recv_bytes "
     "connection._ConnectionBase.recv managers.BaseProxy._callmethod <string>.put train.run ",
     "/x/train.py:68 in run", StandKind::kManager, "BaseProxy._callmethod", EndKind::kSocket},
    {"queue_of_multiprocessing",
     " read connection.Connection._recv connection._ConnectionBase.recv_bytes queues.Queue.get "
     "train.run ",
     "/x/train.py:25 in run", StandKind::kProcessQueue, "Queue.get", EndKind::kPipe},
    {"data_loader",
     " poll selectors.PollSelector.select connection.wait connection.Connection.poll "
     "queues.Queue.get dataloader._MultiProcessingDataLoaderIter._try_get_data "
     "dataloader._BaseDataLoaderIter.__next__ train.run ",
     "/x/train.py:25 in run", StandKind::kDataLoader, "_BaseDataLoaderIter.__next__",
     EndKind::kPipe},
    {"ring_of_the_program", " clock_nanosleep queue.Ring.acquire_read engine.run_worker ",
     "/x/queue.py:43 in Ring.acquire_read", StandKind::kRing, "Ring.acquire_read"},
    {"flock", " flock files.take_turns files.main ", "/x/files.py:25 in take_turns",
     StandKind::kFileLock, "flock", EndKind::kNone, "locks_lock_inode_wait"},
    {"fcntl", " __libc_fcntl64 files.run ", "/x/files.py:53 in run", StandKind::kFileLock,
     "__libc_fcntl64", EndKind::kNone, "fcntl_setlk"},
    {"filelock",
     " clock_nanosleep _api.BaseFileLock.acquire _api.BaseFileLock.__enter__ files.run ",
     "/x/files.py:60 in run", StandKind::kFileLock, "BaseFileLock.acquire"},
    {"poll_of_a_file", " clock_nanosleep common.wait_for_file files.run ",
     "/x/common.py:69 in wait_for_file", StandKind::kSleep, "clock_nanosleep"},
    {"signal", " pause signals.run ", "/x/signals.py:29 in run", StandKind::kSignal, "pause"},
    {"socket", " __recv sockets.receive sockets.run ", "/x/sockets.py:42 in receive",
     StandKind::kSocket, "socket.recv", EndKind::kSocket, "wait_woken"},
    {"datagrams", " recvfrom drivers.datagrams drivers.drive ", "/x/drivers.py:40 in datagrams",
     StandKind::kSocket, "recvfrom", EndKind::kNone, "__skb_wait_for_more_packets"},
    {"pipe", " read pipes.count_tokens pipes.run ", "/x/pipes.py:80 in count_tokens",
     StandKind::kPipe, "file.read", EndKind::kNone, "anon_pipe_read"},
    {"selector", " epoll_wait selectors.EpollSelector.select sockets.greet_all sockets.run ",
     "/x/sockets.py:77 in greet_all", StandKind::kSocket, "EpollSelector.select", EndKind::kSocket,
     "do_epoll_wait"},
    {"mutex_in_shared_memory", " __GI___lll_lock_wait __pthread_mutex_lock CountStep main ",
     "/x/mutex.c:30 in CountStep", StandKind::kLock, "__pthread_mutex_lock"},
    {"barrier_in_shared_memory", " pthread_barrier_wait main ", "/x/barrier.c:52 in main",
     StandKind::kBarrier, "pthread_barrier_wait"},
    {"semaphore_of_system_v", " semtimedop Change WriteLog main ", "/x/sysv.c:17 in Change",
     StandKind::kSemaphore, "semtimedop"},
    {"message_queue", " __libc_msgrcv Receive main ", "/x/queue.c:34 in Receive",
     StandKind::kMessageQueue, "__libc_msgrcv"},
    {"zeromq", " __poll zmq_msg_recv zeromq.run ", "/x/zeromq.py:57 in run", StandKind::kZeroMq,
     "zmq_msg_recv"},
    {"coordination_service",
     " __futex absl::lts::Mutex::LockSlowWithDeadline absl::lts::Notification::WaitForNotification "
     "xla::CoordinationServiceAgent::WaitAtBarrier "
     "xla::DistributedRuntimeCoordinationServiceClient::WaitAtBarrier jax_service.run ",
     "/x/jax_service.py:40 in run", StandKind::kJaxBarrier,
     "xla::DistributedRuntimeCoordinationServiceClient::WaitAtBarrier"},
    {"gloo_without_torch", " __futex_abstimed_wait_common gloo::barrier train.step ",
     "/x/train.py:31 in step", StandKind::kGloo, "gloo::barrier"},
    {"child_of_a_fork_that_joins_a_thread",
     " __new_sem_wait_slow64 threading.Thread.join queues.Queue._finalize_join "
     "process.BaseProcess._bootstrap popen_fork.Popen._launch common.start_worker ",
     "/x/common.py:110 in start_worker", StandKind::kThread, "Thread.join"},
    {"worker_of_a_pool",
     " read connection.Connection._recv connection._ConnectionBase.recv queues.SimpleQueue.get "
     "pool.worker process.BaseProcess.run process.BaseProcess._bootstrap ",
     "", StandKind::kIdle, "pool.worker", EndKind::kPipe},
    {"worker_of_a_data_loader_that_was_forked",
     " poll selectors.PollSelector.select connection.wait connection.Connection.poll "
     "queues.Queue.get worker._worker_loop process.BaseProcess.run process.BaseProcess._bootstrap "
     "popen_fork.Popen._launch popen_fork.Popen.__init__ process.BaseProcess.start "
     "dataloader._MultiProcessingDataLoaderIter.__init__ dataloader.DataLoader.__iter__ train.run ",
     "/x/train.py:39 in run", StandKind::kIdle, "worker._worker_loop", EndKind::kPipe},
    {"lock_of_such_a_worker",
     " __new_sem_wait_slow64 PyThread_acquire_lock_timed train.Samples.__getitem__ "
     "fetch._MapDatasetFetcher.fetch worker._worker_loop process.BaseProcess._bootstrap "
     "popen_fork.Popen._launch dataloader.DataLoader.__iter__ train.run ",
     "/x/train.py:26 in Samples.__getitem__", StandKind::kLock, "PyThread_acquire_lock_timed"},
    {"function_inside_of_another_one",
     " pthread_cond_timedwait ray::core::GetRequest::Wait ray::core::CoreWorker::Get worker.get "
     "actors.<genexpr> actors.Trainer.train function_manager.actor_method_executor "
     "worker.Worker.main_loop ",
     "/x/actors.py:28 in Trainer.train.<locals>.<genexpr>", StandKind::kRay,
     "ray::core::CoreWorker::Get"},
    {"window_of_mpi",
     " __sched_yield opal_progress ompi_osc_rdma_lock_atomic PMPI_Win_lock "
     "__pyx_pw_6mpi4py_3MPI_3Win_49Lock mpi_windows.count_steps ",
     "/x/mpi_windows.py:29 in count_steps", StandKind::kMpiWindow, "PMPI_Win_lock"},
    {"spawn_of_mpi", " opal_progress ompi_dpm_connect_accept PMPI_Comm_spawn mpi_windows.run ",
     "/x/mpi_windows.py:82 in run", StandKind::kMpiSpawn, "PMPI_Comm_spawn"},
    {"file_of_mpi",
     " opal_progress ompi_request_default_wait mca_io_ompio_file_open PMPI_File_open files.run ",
     "/x/files.py:8 in run", StandKind::kMpi, "PMPI_File_open"},
    {"lock_of_a_manager",
     " __new_sem_wait_slow64.constprop.0 PyThread_acquire_lock_timed PyObject_Call "
     "managers.Server.serve_client managers.Server.handle_request threading.Thread.run ",
     "", StandKind::kLock, "PyThread_acquire_lock_timed"},
    {"queue_of_a_manager",
     " __new_sem_wait_slow64 threading.Condition.wait queue.Queue.get PyObject_Call "
     "managers.Server.serve_client managers.Server.handle_request threading.Thread.run ",
     "", StandKind::kIdle, "Server.serve_client"},
    {"manager_without_a_request",
     " __libc_read connection.Connection._recv connection._ConnectionBase.recv "
     "managers.Server.serve_client managers.Server.handle_request threading.Thread.run ",
     "", StandKind::kIdle, "Server.serve_client", EndKind::kSocket, "unix_stream_read_generic"},
    {"computes", " train.step ", "/x/train.py:31 in step", kUnknown, ""},
};

TEST(StandKindsTest, TheRowThatFitsClosestToTheProgramCounts) {
  for (const StackCase& c : kCases) {
    StackPlace place;
    place.functions = c.functions;
    place.at = c.at;
    place.end = c.end;
    // The places of real stacks have the library's function that the line called.
    place.inside = c.function;
    const StandFunction found = StandsIn(place, c.channel);
    EXPECT_STREQ(StandKindInWords(found.kind), StandKindInWords(c.kind)) << c.name;
    EXPECT_EQ(found.kind, c.kind) << c.name;
    EXPECT_EQ(found.name, c.function) << c.name;
  }
}

TEST(StandKindsTest, EveryKindHasWordsButTheUnknownOne) {
#define X(kind, whom, traits, words) \
  EXPECT_EQ(*StandKindInWords(StandKind::kind) == '\0', StandKind::kind == kUnknown) << #kind;
  ROLLCALL_STAND_KINDS(X)
#undef X
}

}  // namespace
}  // namespace rollcall
