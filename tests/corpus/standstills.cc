// SPDX-License-Identifier: Apache-2.0
#include "standstills.h"

#include <algorithm>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "daemon/agents/standing_sample.h"
#include "daemon/report/program_line.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall::corpus {
namespace {

constexpr int64_t kStartNs = 1'700'000'000 * kSecond;
constexpr int64_t kApartNs = 5 * kSecond;  // of two samples
constexpr int kSamples = 10;

// A function, as the agent names it: of Python, if it has a file. Innermost first.
struct Function {
  const char* name;
  const char* file = "";
};
using Functions = std::vector<Function>;

constexpr char kPython[] = "/usr/lib/python3.11/";

// Waits for a thread of the process itself, or for no other.
const std::vector<Functions>& OwnWaits() {
  static const auto& waits = *new std::vector<Functions>{
      {{"__new_sem_wait_slow64"}, {"Condition.wait", "threading.py"}, {"Queue.get", "queue.py"}},
      {{"__new_sem_wait_slow64"}, {"Thread.join", "threading.py"}},
      {{"__new_sem_wait_slow64"},
       {"Condition.wait", "threading.py"},
       {"Event.wait", "threading.py"}},
      {{"__new_sem_wait_slow64"}, {"PyThread_acquire_lock_timed"}},
      {{"Condition.wait", "threading.py"}, {"Future.result", "concurrent/futures/_base.py"}},
      {{"__lll_lock_wait"}, {"pthread_mutex_lock"}},
  };
  return waits;
}

// Waits in which all ranks must take part.
const std::vector<Functions>& JointWaits() {
  static const auto& waits = *new std::vector<Functions>{
      {{"poll"}, {"ompi_request_default_wait"}, {"PMPI_Barrier"}},
      {{"__futex_abstimed_wait_common"}, {"gloo::barrier(gloo::BarrierOptions&)"}},
      {{"__futex_abstimed_wait_common"}, {"tsl::CoordinationServiceAgent::WaitAtBarrier"}},
      {{"__futex_abstimed_wait_common"}, {"pthread_barrier_wait"}},
      {{"__futex_abstimed_wait_common"}, {"xla::cpu::GlooCommunicator::AllReduce"}},
  };
  return waits;
}

// Waits for a device, by the runtimes of several makers.
const std::vector<Functions>& DeviceWaits() {
  static const auto& waits = *new std::vector<Functions>{
      {{"cudaStreamSynchronize"}},
      {{"ioctl"}, {"hipEventSynchronize"}},
      {{"__futex_abstimed_wait_common"}, {"aclrtSynchronizeDeviceWithTimeout"}},
      {{"sched_yield"}, {"zeCommandQueueSynchronize"}},
      {{"poll"}, {"musaDeviceSynchronize"}},
      {{"poll"}, {"synStreamSynchronize"}},
  };
  return waits;
}

// What may bring work, or never anything more.
const std::vector<Functions>& WorkWaits() {
  static const auto& waits = *new std::vector<Functions>{
      {{"__new_sem_wait_slow64"}, {"Condition.wait", "threading.py"}, {"Queue.get", "queue.py"}},
      {{"poll"},
       {"_ConnectionBase.recv", "multiprocessing/connection.py"},
       {"Queue.get", "multiprocessing/queues.py"}},
      {{"__poll"}, {"zmq_msg_recv"}},
  };
  return waits;
}

const Functions kReadsSocket = {{"__libc_recv"}};
const Functions kReadsPipe = {{"__libc_read"}};
const Functions kLocksFile = {{"flock"}};
const Functions kServes = {{"poll"},
                           {"_PollLikeSelector.select", "selectors.py"},
                           {"BaseServer.serve_forever", "socketserver.py"}};
const Functions kReadsKeys = {{"PyOS_Readline"}, {"builtin_input"}};

// What the samples of a rank show.
struct Seen {
  Functions waits = kReadsSocket;
  int line = 40;               // of the program
  std::vector<int> for_ranks;  // at the other ends
  std::string end_kind;
  std::string state = "S", wait_channel = "futex_do_wait";
  double cpus = 0, bytes_a_second = 0, wakes_a_second = 0;
  bool changes_line = false;
  bool has_server = false;
  bool has_child = false;  // that waits for it, as it waits for the child
  double child_cpus = 0;
  bool has_ended = false, died = false;
  bool is_traced = false;
  std::string holds, wants;  // paths of files that it has locked, and waits to lock
  int holder = -1;           // of `wants`: a rank
};

class Scene {
 public:
  explicit Scene(uint64_t seed) : random_(seed * 2654435761u + 7) {
    ranks_ = Pick(8) == 0 ? 32 + Pick(97) : 3 + Pick(14);
    hosts_ = Pick(3) == 0 ? 1 + Pick(4) : 1;
    seen.resize(static_cast<size_t>(ranks_));
    broken = Pick(ranks_);
    for (Seen& one : seen) one.line = 40;
  }

  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  const Functions& Any(const std::vector<Functions>& all) {
    return all[static_cast<size_t>(Pick(static_cast<int>(all.size())))];
  }
  int ranks() const { return ranks_; }
  void OneHost() { hosts_ = 1; }
  Seen& Broken() { return seen[static_cast<size_t>(broken)]; }

  // Who waits for whom by a socket or a pipe of the host.
  void Waits(int rank, std::vector<int> whom, bool by_pipe = false) {
    Seen& one = seen[static_cast<size_t>(rank)];
    one.waits = by_pipe ? kReadsPipe : kReadsSocket;
    one.for_ranks = std::move(whom);
    one.end_kind = by_pipe ? "pipe" : "socket";
    one.wait_channel = by_pipe ? "pipe_read" : "unix_stream_read_generic";
  }
  void AllWaitForBroken() {
    OneHost();
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank != broken) Waits(rank, {broken});
    }
  }
  void AllAreIn(const Functions& waits) {
    for (Seen& one : seen) {
      one.waits = waits;
      one.wait_channel = "futex_do_wait";
    }
  }
  void BreakElsewhere(const Functions& waits) {
    Broken().waits = waits;
    Broken().line = 71;
    Broken().for_ranks.clear();
    Broken().end_kind.clear();
    Broken().wait_channel = "futex_do_wait";
  }

  JobState Job(int64_t* now_ns) const;

  std::vector<Seen> seen;
  int broken = 0;

 private:
  int32_t PidOf(int rank) const { return 4000 + 10 * rank; }
  int HostOf(int rank) const { return rank * hosts_ / ranks_; }
  void AddThread(int32_t pid, int32_t tid, const Functions& waits, int line, const Seen& one,
                 int sample, v1::ThreadStack* thread) const;
  void AddChild(int rank, const Seen& one, int sample, v1::ProcessStack* stack) const;
  void AddLocks(int rank, const Seen& one, v1::ProcessStack* stack) const;
  v1::ProcessStack Sample(int rank, int sample) const;
  Process ProcessOf(int rank) const;

  std::mt19937_64 random_;
  int ranks_ = 0, hosts_ = 1;
};

void AddFrame(const Function& function, int line, v1::ThreadStack* thread) {
  v1::Frame* frame = thread->add_frames();
  frame->set_function(function.name);
  if (*function.file == '\0') {
    frame->set_module("/usr/lib/x86_64-linux-gnu/libc.so.6");
    return;
  }
  frame->set_python(true);
  frame->set_file(function.file[0] == '/' ? function.file : absl::StrCat(kPython, function.file));
  frame->set_line(line);
}

void Scene::AddThread(int32_t pid, int32_t tid, const Functions& waits, int line, const Seen& one,
                      int sample, v1::ThreadStack* thread) const {
  thread->set_tid(tid);
  thread->set_state(one.state);
  thread->set_wait_channel(one.wait_channel);
  const double seconds = static_cast<double>(sample * kApartNs) / kSecond;
  thread->set_switches(100 + static_cast<uint64_t>(one.wakes_a_second * seconds));
  for (const Function& function : waits) AddFrame(function, 171, thread);
  if (tid != pid) return;
  const int moved = one.changes_line ? sample : 0;
  AddFrame({"step", "/home/user/train.py"}, line + moved, thread);
  AddFrame({"main", "/home/user/train.py"}, 90, thread);
  if (one.end_kind.empty()) return;
  thread->mutable_other_end()->set_kind(one.end_kind);
  for (const int rank : one.for_ranks) thread->mutable_other_end()->add_pids(PidOf(rank));
  if (one.has_child) thread->mutable_other_end()->add_pids(pid + 1);
}

// It reads from its parent, which reads from it.
void Scene::AddChild(int rank, const Seen& one, int sample, v1::ProcessStack* stack) const {
  v1::ChildProcess* child = stack->add_children();
  child->set_pid(PidOf(rank) + 1);
  child->set_parent(PidOf(rank));
  child->set_name("helper");
  child->set_state("S");
  child->set_cpu_seconds(one.child_cpus * static_cast<double>(sample * kApartNs) / kSecond);
  v1::ThreadStack* thread = child->add_threads();
  thread->set_tid(child->pid());
  thread->set_state("S");
  thread->set_switches(50);
  AddFrame({"__libc_read"}, 0, thread);
  AddFrame({"serve", "/home/user/helper.py"}, 12, thread);
  thread->mutable_other_end()->set_kind("pipe");
  thread->mutable_other_end()->add_pids(PidOf(rank));
}

void Scene::AddLocks(int rank, const Seen& one, v1::ProcessStack* stack) const {
  if (!one.wants.empty()) {
    v1::FileLock* lock = stack->add_locks();
    lock->set_inode(7);
    lock->set_path(one.wants);
    lock->set_waits(true);
    if (one.holder >= 0) lock->set_holder(PidOf(one.holder));
  }
  if (one.holds.empty()) return;
  v1::FileLock* lock = stack->add_locks();
  lock->set_inode(7);
  lock->set_path(one.holds);
  lock->set_holder(PidOf(rank));
}

v1::ProcessStack Scene::Sample(int rank, int sample) const {
  const Seen& one = seen[static_cast<size_t>(rank)];
  const double seconds = static_cast<double>(sample * kApartNs) / kSecond;
  v1::ProcessStack stack;
  stack.set_rank(rank);
  stack.set_host(absl::StrCat("node-", HostOf(rank)));
  stack.set_pid(PidOf(rank));
  stack.set_cpu_seconds(100 + one.cpus * seconds);
  stack.set_moved_bytes(1e6 + one.bytes_a_second * seconds);
  AddThread(PidOf(rank), PidOf(rank), one.waits, one.line, one, sample, stack.add_threads());
  if (one.has_server) {
    AddThread(PidOf(rank), PidOf(rank) + 5, kServes, 0, Seen(), sample, stack.add_threads());
  }
  if (one.has_child) AddChild(rank, one, sample, &stack);
  AddLocks(rank, one, &stack);
  return stack;
}

Process Scene::ProcessOf(int rank) const {
  const Seen& one = seen[static_cast<size_t>(rank)];
  Process process;
  process.host = absl::StrCat("node-", HostOf(rank));
  process.pid = PidOf(rank);
  process.start_time = 100 + static_cast<uint64_t>(rank);
  process.global_rank = rank;
  process.world_size = ranks_;
  process.liveness = Liveness::kAlive;
  process.state = one.state[0];
  process.traced = one.is_traced;
  if (one.has_ended) {
    process.liveness = one.died ? Liveness::kDied : Liveness::kExited;
    process.exit_code = one.died ? -1 : 0;
    process.exit_signal = one.died ? 9 : 0;
    process.ended_ns = kStartNs;
    return process;
  }
  std::shared_ptr<const Standing> row;
  for (int sample = 0; sample < kSamples; ++sample) {
    row = AddToRow(row, Sample(rank, sample), kStartNs + sample * kApartNs);
  }
  process.standing = row;
  process.place = FindPlace(Sample(rank, kSamples - 1));
  process.stacks_ns = kStartNs + (kSamples - 1) * kApartNs;
  return process;
}

JobState Scene::Job(int64_t* now_ns) const {
  JobState job;
  job.key = JobKey("train");
  for (int rank = 0; rank < ranks_; ++rank) job.processes.push_back(ProcessOf(rank));
  *now_ns = kStartNs + (kSamples - 1) * kApartNs + kSecond;
  return job;
}

// Fills the scene and the right answer.
using Make = void (*)(Scene* s, StandCase* c);
struct Kind {
  const char* name;
  Make make;
};

void BlameBroken(const Scene& s, StandCase* c) { c->culprits = {s.broken}; }

const std::vector<Kind>& Hangs() {
  static const auto& kinds = *new std::vector<Kind>{
      {"star",
       [](Scene* s, StandCase* c) {
         s->AllWaitForBroken();
         s->BreakElsewhere(s->Any(OwnWaits()));
         BlameBroken(*s, c);
       }},
      {"chain",
       [](Scene* s, StandCase* c) {
         s->OneHost();
         s->broken = s->ranks() - 1;
         for (int rank = 0; rank + 1 < s->ranks(); ++rank)
           s->Waits(rank, {rank + 1}, s->Pick(2) == 0);
         s->BreakElsewhere(s->Any(OwnWaits()));
         BlameBroken(*s, c);
       }},
      {"ring",
       [](Scene* s, StandCase* c) {
         s->OneHost();
         const int size = 2 + s->Pick(s->ranks() - 2);
         for (int rank = 0; rank < s->ranks(); ++rank) {
           s->Waits(rank, {rank < size ? (rank + 1) % size : s->Pick(size)});
           s->seen[static_cast<size_t>(rank)].line = 40 + (rank < size ? s->Pick(3) : 0);
           if (rank < size) c->culprits.insert(rank);
         }
         c->unseen = true;  // where all stand at one line
       }},
      {"elsewhere",
       [](Scene* s, StandCase* c) {
         s->AllAreIn(s->Any(JointWaits()));
         s->BreakElsewhere(s->Any(OwnWaits()));
         BlameBroken(*s, c);
       }},
      {"other_call",
       [](Scene* s, StandCase* c) {
         s->AllAreIn(s->Any(JointWaits()));
         s->BreakElsewhere(s->Any(JointWaits()));
         BlameBroken(*s, c);
       }},
      {"all_in_one_place",
       [](Scene* s, StandCase* c) {
         s->AllAreIn(s->Any(JointWaits()));
         c->most = Certainty::kPossible;
       }},
      {"child",
       [](Scene* s, StandCase* c) {
         s->AllWaitForBroken();
         s->BreakElsewhere(kReadsPipe);
         s->Broken().end_kind = "pipe";
         s->Broken().has_child = true;
         BlameBroken(*s, c);
       }},
      {"file_lock",
       [](Scene* s, StandCase* c) {
         s->OneHost();
         s->BreakElsewhere(s->Any(OwnWaits()));
         s->Broken().holds = "/data/cache.lock";
         for (int rank = 0; rank < s->ranks(); ++rank) {
           if (rank == s->broken) continue;
           Seen& one = s->seen[static_cast<size_t>(rank)];
           one.waits = kLocksFile;
           one.wait_channel = "locks_lock_inode_wait";
           one.wants = "/data/cache.lock";
           one.holder = s->broken;
         }
         BlameBroken(*s, c);
       }},
      {"died",
       [](Scene* s, StandCase* c) {
         s->AllAreIn(s->Any(JointWaits()));
         s->Broken().has_ended = true;
         s->Broken().died = s->Pick(2) == 0;
         BlameBroken(*s, c);
       }},
      {"storage",
       [](Scene* s, StandCase* c) {
         s->AllWaitForBroken();
         s->BreakElsewhere(kReadsPipe);
         s->Broken().state = "D";
         s->Broken().wait_channel = "rpc_wait_bit_killable";
         BlameBroken(*s, c);
       }},
  };
  return kinds;
}

// A hang but for what the broken rank does.
void MakeAnyHang(Scene* s, StandCase* c) {
  const auto& kinds = Hangs();
  int chosen = s->Pick(static_cast<int>(kinds.size()));
  const auto has_moving_rank = [&](int i) {
    const std::string name = kinds[static_cast<size_t>(i)].name;
    return name != "died" && name != "all_in_one_place" && name != "ring";
  };
  while (!has_moving_rank(chosen)) chosen = (chosen + 1) % static_cast<int>(kinds.size());
  kinds[static_cast<size_t>(chosen)].make(s, c);
}

const std::vector<Kind>& Healthy() {
  static const auto& kinds = *new std::vector<Kind>{
      {"computes",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         // MPI uses the CPU while it waits.
         if (s->Broken().end_kind.empty()) s->BreakElsewhere(s->Any(OwnWaits()));
         s->Broken().cpus = 0.05 + s->Pick(95) / 100.0;
       }},
      {"writes",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().bytes_a_second = 4096 << s->Pick(12);
       }},
      {"moves",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().changes_line = true;
       }},
      {"wakes",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().wakes_a_second = 0.2 + s->Pick(20) / 10.0;
         if (!s->Broken().wants.empty()) s->Broken().cpus = 0.1;
       }},
      {"child_works",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().has_child = true;
         s->Broken().child_cpus = 0.05 + s->Pick(95) / 100.0;
       }},
      {"serves",
       [](Scene* s, StandCase* /*c*/) {
         s->AllWaitForBroken();
         s->BreakElsewhere(kServes);
       }},
      {"engine",
       [](Scene* s, StandCase* /*c*/) {
         s->AllAreIn(WorkWaits()[static_cast<size_t>(1 + s->Pick(2))]);
         s->BreakElsewhere(OwnWaits()[0]);
         s->Broken().has_server = true;
       }},
      {"without_work", [](Scene* s, StandCase* /*c*/) { s->AllAreIn(s->Any(WorkWaits())); }},
      {"on_its_gpu",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().waits = s->Any(DeviceWaits());
         s->Broken().state = "S";
       }},
      {"on_their_devices",
       [](Scene* s, StandCase* /*c*/) {
         s->AllAreIn(s->Any(DeviceWaits()));
         for (Seen& one : s->seen) one.line = 40 + s->Pick(2);
       }},
      {"asks_a_person",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().waits = kReadsKeys;
         s->Broken().state = "S";
       }},
      {"in_a_debugger",
       [](Scene* s, StandCase* c) {
         MakeAnyHang(s, c);
         s->Broken().is_traced = true;
       }},
  };
  return kinds;
}

StandCase MakeCase(const std::vector<Kind>& kinds, uint64_t seed, const std::string& wanted) {
  Scene scene(seed);
  const Kind* kind = &kinds[static_cast<size_t>(scene.Pick(static_cast<int>(kinds.size())))];
  for (const Kind& one : kinds) {
    if (one.name == wanted) kind = &one;
  }
  StandCase c;
  c.kind = kind->name;
  kind->make(&scene, &c);
  c.job = scene.Job(&c.now_ns);
  return c;
}

std::vector<std::string> NamesOf(const std::vector<Kind>& kinds) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) names.push_back(kind.name);
  return names;
}

}  // namespace

const std::vector<std::string>& StandstillKinds() {
  static const auto& names = *new std::vector<std::string>(NamesOf(Hangs()));
  return names;
}

const std::vector<std::string>& HealthyStandKinds() {
  static const auto& names = *new std::vector<std::string>(NamesOf(Healthy()));
  return names;
}

StandCase MakeStandstill(uint64_t seed, const std::string& kind) {
  StandCase c = MakeCase(Hangs(), seed, kind);
  c.hangs = true;
  return c;
}

StandCase MakeHealthyStand(uint64_t seed, const std::string& kind) {
  StandCase c = MakeCase(Healthy(), seed, kind);
  c.culprits.clear();
  return c;
}

StandScore ScoreStandstill(const StandCase& c, const std::vector<Verdict>& verdicts) {
  StandScore score;
  score.found = !verdicts.empty();
  if (!c.hangs || verdicts.empty()) {
    score.right = c.hangs == score.found;
    return score;
  }
  const Verdict& verdict = verdicts.front();
  std::set<int> named;
  for (const Culprit& culprit : verdict.culprits) named.insert(culprit.rank);
  const bool names_all = named.size() == c.job.processes.size();
  const bool fits = named == c.culprits || (c.unseen && (named.empty() || names_all));
  score.right = verdict.cause == Cause::kStandstill && fits;
  score.too_sure =
      verdict.certainty > c.most || (!fits && verdict.certainty > Certainty::kPossible);
  return score;
}

}  // namespace rollcall::corpus
