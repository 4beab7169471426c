# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder, which hang outside of every recorded call: the one table of what Rollcall must say.

Written before there was a rule. Each row has a healthy twin, the same program with --fixed: no incident.
"""

from rows import Row

HANGS = ("standstill",)
OR_NONE = ("standstill", "")  # from outside, nothing distinguishes these from programs without work
JOINS = ("standstill", "init_incomplete")
KEYS = ("standstill", "missing_rank", "init_incomplete")
CHILD = r"child|process \d+"
LOCK = r"\block\b|mutex"
QUEUE = r"\bqueue\b"
STORE = r"\bstore\b"
RAY, JAX = "ray[default]", "jax"

PIPES = [
    Row("child_pipes.keeps_the_write_end", HANGS, (1,), ("waits-for-a-child",),
        says=("pipe", CHILD), twin="its packer writes to disk for long"),
    Row("child_pipes.nobody_reads_the_warnings", HANGS, (2,), ("waits-for-a-child",),
        says=("pipe", CHILD), twin="its checker computes for long"),
    Row("child_pipes.question_has_no_end", HANGS, (1,), ("waits-for-a-child",),
        says=("pipe", CHILD), twin="the child of each rank rests 3 s before each answer"),
]
SOCKETS = [
    Row("sockets.body_is_too_short", HANGS, (0, 2), ("ask-the-other-end", "lost-message"),
        says=("socket|connection|TCP", r"rank 0\b", r"rank 2\b"), twin="rank 0 rests 3 s before each answer"),
    Row("sockets.accepts_one_too_few", HANGS, (0,), ("ask-the-other-end", "lacking-party"), ranks=4,
        says=("socket|connection|TCP", r"rank 0\b"), twin="rank 0 saves for long before it answers"),
    Row("sockets.coordinator_stops_answering", HANGS, (), ("ask-the-other-end",),
        says=("socket|connection|TCP", r"process \d+"), twin="the coordinator rests 4 s before each answer"),
]
WORKERS = [
    Row("workers.joins_before_it_reads", HANGS, (1,), ("waits-for-a-child", "queue-is-full"),
        says=(CHILD, "pipe|queue"), twin="its worker computes for long"),
    Row("workers.lock_of_a_dead_worker", HANGS, (2,), ("held-lock",),
        says=("lock|semaphore", "multiprocessing|shared"), twin="it and its worker take the lock every 1.5 s"),
    Row("workers.barrier_counts_its_owner", HANGS, (1,), ("waits-for-a-child", "lacking-party"),
        says=("[Bb]arrier", CHILD), twin="its workers compute for long before the barrier"),
    Row("workers.notifies_nobody", HANGS, (2,), ("lost-wake-up", "waits-for-a-child"),
        says=("[Cc]ondition",), twin="its worker saves for long, then notifies"),
    Row("workers.each_takes_one_of_two_slots", HANGS, (0,), ("waits-for-a-child", "lock-order"),
        says=("[Ss]emaphore", CHILD), twin="its workers take slots every 2 s"),
]
QUEUES = [
    Row("queues.producer_stops", HANGS, (1,), ("waits-for-a-thread", "ask-the-other-end"),
        says=(QUEUE, r"rank 1\b"), twin="rank 1 rests 3 s before each task"),
    Row("queues.nobody_takes_results", HANGS, (), ("queue-is-full",),
        says=(QUEUE, r"\bfull\b|put"), twin="rank 0 rests 3 s before it empties the queue"),
]
THREADS = [
    Row("threads.two_locks_in_two_orders", HANGS, (1,), ("lock-order", "waits-for-a-thread"),
        says=(LOCK, "thread"), twin="main and saving thread take the locks every 3 s"),
    Row("threads.prefetching_thread_has_ended", HANGS, (2,), ("thread-failed",),
        says=(QUEUE, "thread"), twin="a batch comes every 2 s",
        defect="the threads of the other ranks have done their work and ended: nothing shows that one failed",
        by_chance=True),
    Row("threads.future_is_never_set", OR_NONE, (0,), ("ask-the-other-end", "lost-wake-up"),
        says=("asyncio|event loop|coroutine", r"rank 0\b"), twin="each rank sleeps 4 s in its event loop"),
]
FILES = [
    Row("files.waits_under_the_lock", HANGS, (0,), ("file-lock",),
        says=(LOCK, r"cache\.lock"), twin="each saves in its turn under the lock"),
    Row("files.keeps_a_record_lock", HANGS, (2,), ("file-lock", "waits-for-a-thread"),
        says=(LOCK, r"\bindex\b"), twin="each computes in its turn under the lock"),
    Row("files.index_has_another_name", HANGS, (0,), ("nobody-makes-it", "sleeps-alone"),
        says=("file|sleep|poll",), twin="rank 0 writes its index for long"),
    Row("files.nobody_writes_the_token", OR_NONE, (), ("nobody-makes-it", "sleeps-alone"),
        says=("file|sleep|poll",), twin="rank 0 computes 3 s before each file"),
    Row("files.transaction_is_left_open", HANGS, (1,), ("file-lock", "held-lock"),
        says=(LOCK, r"trials\.db|SQLite"), twin="each computes in its turn in a transaction"),
    Row("files.lock_file_is_left_behind", OR_NONE, (), ("file-lock", "sleeps-alone"),
        says=("lock|file|sleep|poll",), twin="each computes in its turn while its lock file is there"),
]
SIGNALS = [
    Row("signals.signal_comes_too_early", HANGS, (1,), ("lost-wake-up",),
        says=("signal",), twin="rank 0 computes for long before it sends the signal"),
    Row("signals.handler_needs_the_lock", HANGS, (2,), ("signal-handler",),
        says=("handler", LOCK), twin="each step computes 3 s under the lock, and no signal comes"),
]
C_PROGRAMS = [
    Row("posix_semaphore.c", HANGS, (), ("lost-wake-up", "held-lock"),
        says=("[Ss]emaphore",), twin="each computes in its turn"),
    Row("sysv_semaphore.c", HANGS, (), ("held-lock", "waits-for-a-child"),
        says=("[Ss]emaphore", CHILD), twin="a child of each computes in its turn"),
    Row("shared_barrier.c", HANGS, (2,), ("waits-for-a-thread", "lost-wake-up"),
        says=("[Bb]arrier", r"rank 2\b"), twin="a batch comes every 3 s"),
    Row("shared_mutex.c", HANGS, (0,), ("held-lock", "ask-the-other-end"),
        says=("pipe", LOCK), twin="each computes in its turn under the mutex"),
    Row("record_locks.c", HANGS, (0, 1), ("lock-order", "file-lock"),
        says=(LOCK, r"\brecords\b"), twin="all take the locks in one order, and compute under them"),
    Row("message_queue.c", HANGS, (0,), ("lost-message", "ask-the-other-end"),
        says=("message queue|msgrcv",), twin="rank 0 computes 3 s in each round"),
]
STORES = [
    Row("stores.rank_is_never_started", JOINS, (2,), ("launch-count",), launch=("--absent", "2"), at="",
        says=(r"rank 2\b",), twin="three ranks train slowly"),
    Row("stores.one_rank_counts_four", KEYS, (1,), ("launch-count", "sizes-of-the-world-differ"),
        launch=("--told", "1:4"), says=(STORE, "ready/3", r"rank 1\b"), twin="three ranks train slowly"),
    Row("stores.first_rank_sets_nothing", KEYS, (0,), ("waits-for-a-thread", "ask-the-other-end"),
        says=(STORE, "settings"), twin="rank 0 saves for long before it sets the key"),
    Row("stores.key_is_spelled_otherwise", (*KEYS, ""), (), ("nobody-makes-it", "idle-workers"),
        says=(STORE, "epoch-4"), twin="rank 0 computes 3 s before it sets each key"),
    Row("stores.counter_lacks_one", KEYS, (2,), ("waits-for-a-thread", "ask-the-other-end"),
        says=(r"rank 2\b", "store|sleep|poll"), twin="all rest 2 s in each step and poll the counter"),
]
LOADERS = [
    Row("loaders.worker_inherits_a_held_lock", HANGS, (1,), ("data-loader",),
        says=("DataLoader|data loader", CHILD), twin="a sample takes 2 s"),
    Row("loaders.workers_ask_for_too_many", HANGS, (2,), ("data-loader",),
        says=("DataLoader|data loader", CHILD), twin="a shard comes each second"),
]
MESSAGES = [
    Row("zeromq.answer_is_lost", HANGS, (0, 2), ("lost-message", "ask-the-other-end"), package="pyzmq",
        says=("ZeroMQ|zmq", r"rank 0\b"), twin="rank 0 rests 4 s before it answers"),
    Row("zeromq.worker_connects_elsewhere", HANGS, (2,), ("ask-the-other-end", "lost-message"), package="pyzmq",
        says=("ZeroMQ|zmq",), twin="rank 0 computes 3 s before it sends more work"),
    Row("grpc_calls.servers_ask_each_other", HANGS, (0, 1), ("ask-the-other-end",), package="grpcio",
        says=("gRPC", r"rank 0\b", r"rank 1\b"), twin="each handler computes 1.5 s"),
    Row("grpc_calls.handler_never_returns", HANGS, (1,), ("waits-for-a-thread", "ask-the-other-end"),
        package="grpcio", says=("gRPC", r"rank 1\b"), twin="the handler rests a second for each answer"),
]
ENGINES = [
    Row("engines.worker_is_dead", ("standstill", "rank_died"), (2,), ("killed",), at="",
        says=(r"rank 2\b", "killed|died|SIGKILL"), twin="a request every 3 s"),
    Row("engines.worker_is_stuck_in_a_compile", HANGS, (1,), ("compiles-alone", "waits-for-a-child"),
        says=(r"rank 1\b", CHILD), twin="rank 1 compiles for long, in a child"),
    Row("engines.scheduler_decides_alone", HANGS, (0,), ("lost-message", "ask-the-other-end"),
        says=("broadcast|queue|acquire_read", r"process \d+|scheduler"), twin="a request every 8 s"),
    Row("engines.reader_is_a_message_ahead", HANGS, (1,), ("lost-message", "ask-the-other-end"),
        says=("broadcast|queue|acquire_read", r"rank 1\b"), twin="a request every 5 s"),
    Row("engines.queue_is_full", HANGS, (2,), ("queue-is-full", "waits-for-a-child"),
        says=("pipe", CHILD), twin="the child of rank 2 takes a step's tokens each second"),
]
ACTORS = [
    Row("ray_actors.actors_ask_each_other", HANGS, (0, 1), ("ask-the-other-end",), package=RAY, starter="python",
        says=("Ray|ray", r"rank 0\b", r"rank 1\b"), twin="each actor computes 3 s in each step"),
    # A node that can run the task may be busy or may be added: Ray keeps it until then.
    Row("ray_actors.nobody_has_the_resource", OR_NONE, (1,), ("nobody-makes-it",), package=RAY, starter="python",
        says=("Ray|ray", r"rank 1\b"), twin="a task of each actor computes 3 s in each step"),
    Row("ray_actors.stage_of_a_graph_stands", HANGS, (1,), ("waits-for-a-thread",), package=RAY, starter="python",
        says=("Ray|ray|channel", r"rank 1\b"), twin="each stage computes a second"),
]
COORDINATION = [
    Row("jax_service.never_initializes", JOINS, (1,), ("launch-count", "waits-for-a-thread"), package=JAX,
        says=("JAX|jax", r"rank 1\b"), twin="all prepare their data for long before they initialize"),
    Row("jax_service.skips_a_gather", HANGS, (2,), ("skipped-call", "waits-for-a-thread"), package=JAX,
        says=("process_allgather|gloo|collective", r"rank 2\b"), twin="each step computes 3 s"),
    Row("jax_service.waits_at_another_barrier", HANGS, (1,), ("lacking-party", "skipped-call"), package=JAX,
        says=("barrier", "coordination"), twin="rank 0 saves 4 s before each barrier"),
    Row("jax_service.leaves_a_step_early", HANGS, (1,), ("uneven-inputs",), package=JAX,
        says=("shutdown", r"rank 1\b"), twin="each step computes 3 s"),
]
MPI = [
    Row("mpi_windows.window_stays_locked", HANGS, (1,), ("held-lock", "waits-for-a-thread"), package="mpi4py",
        starter="mpirun", says=("window|Win_lock|lock",), twin="each computes in its turn under the window's lock"),
    Row("mpi_windows.file_is_opened_by_some", HANGS, (2,), ("skipped-call", "waits-for-a-thread"), package="mpi4py",
        starter="mpirun", says=("MPI_File_open|MPI", r"rank 2\b"), twin="rank 0 saves 4 s before each file"),
    Row("mpi_windows.spawned_process_stands", HANGS, (), ("waits-for-a-child", "launch-count"), package="mpi4py",
        starter="mpirun", says=("[Ss]pawn",), twin="the spawned process computes for long before it comes",
        defect="the spawned process counts as another attempt of the job, so nothing shows that it stands"),
]
BETWEEN_PROCESSES = [
    Row("fifos.writer_never_opens", HANGS, (2,), ("waits-for-a-thread", "ask-the-other-end"),
        says=(r"rank 2\b",), twin="each rank computes for 3 s before it opens its pipe"),
    Row("pools.task_waits_for_its_own_pool", HANGS, (1,), ("waits-for-a-thread",),
        says=("future|pool|thread", r"rank 1\b"), twin="its tasks compute, in two pools"),
    Row("stopped.worker_is_stopped", HANGS, (2,), ("waits-for-a-child", "stopped-process"),
        says=(CHILD, r"stopped by a signal"), twin="its worker is stopped and woken every 2 s, and computes between"),
    Row("http_calls.handlers_ask_each_other", HANGS, (0, 1), ("ask-the-other-end",),
        says=("socket|connection|HTTP", r"rank 0\b", r"rank 1\b"), twin="each handler computes 1.5 s"),
    Row("datagrams.datagram_is_lost", HANGS, (2,), ("lost-message", "ask-the-other-end"),
        says=("socket", r"rank 2\b"), twin="a datagram comes every 3 s"),
]
FROM_JOBS = [
    Row("managers.manager_keeps_the_lock", HANGS, (1,), ("held-lock", "waits-for-a-child", "ask-the-other-end"),
        says=("manager", CHILD), twin="rank 1 and its worker take the lock every 1.5 s"),
    Row("pools.pool_inherits_a_held_lock", HANGS, (2,), ("waits-for-a-child", "held-lock"),
        says=("future|pool", CHILD), twin="each task computes 3 s under the lock"),
    Row("loaders.worker_waits_for_a_file_lock", HANGS, (2,), ("file-lock", "held-lock", "waits-for-a-thread"),
        says=(r"rank 2\b", LOCK), twin="a sample takes 2 s under the lock"),
    Row("tensors.nobody_takes_tensors", HANGS, (2,), ("queue-is-full", "waits-for-a-child"),
        says=(QUEUE, r"rank 2\b"), twin="the process of rank 2 computes 3 s before it takes a tensor"),
    Row("threads.coroutines_await_each_other", OR_NONE, (0,), ("ask-the-other-end", "lost-wake-up"),
        says=("asyncio|event loop|coroutine", r"rank 0\b"), twin="rank 0 sleeps 4 s in its event loop"),
    Row("zeromq.requests_cross", HANGS, (0, 1), ("ask-the-other-end", "lost-message"), package="pyzmq",
        says=("ZeroMQ|zmq", r"rank 0\b", r"rank 1\b"), twin="all compute 3 s before they ask"),
    Row("spawned.slots_are_not_released", HANGS, (1,), ("held-lock", "waits-for-a-thread"), starter="python",
        says=("lock|semaphore", r"rank 1\b"), twin="each computes under the only slot"),
    Row("threads.exit_waits_for_a_thread", HANGS, (1,),
        ("handles-an-exception", "waits-for-a-thread", "raised-an-exception"),
        says=("thread", r"rank 1\b"), twin="each step computes 3 s, and each rank ends its thread"),
]
KINDS = [PIPES, SOCKETS, WORKERS, QUEUES, THREADS, FILES, SIGNALS, C_PROGRAMS, STORES, LOADERS, MESSAGES, ENGINES,
         ACTORS, COORDINATION, MPI, BETWEEN_PROCESSES, FROM_JOBS]
CASES = [row for kind in KINDS for row in kind]

# Ordinary programs, always with --fixed: no incident, ever.
LEFT_ALONE = [Row(f"ordinary.{name}", ("",), (), ranks=ranks, package=package) for name, ranks, package in (
    ("notebook", 1, ""), ("http_server", 1, ""), ("worker_pool", 1, ""), ("pauses_in_each_step", 2, ""),
    ("sleeps_between_polls", 1, ""), ("follows_a_file", 1, ""), ("runs_each_minute", 1, ""), ("database", 1, ""),
    ("debugger", 1, ""), ("zeromq_router", 3, "pyzmq"),
)] + [Row(program, ("",), ()) for program in (
    "engines.idle_engine", "drivers.takes_datagrams", "drivers.reads_lines")]
