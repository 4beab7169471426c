// SPDX-License-Identifier: Apache-2.0
#include "network_cases.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "network_shapes.h"
#include "network_transfer.h"

namespace rollcall::corpus {
namespace {

constexpr int64_t kMs = 1'000'000, kSecondNs = 1'000 * kMs;
constexpr int64_t kStart = 1'700'000'000 * kSecondNs;  // of the transfer
constexpr uint64_t kCommunicator = 0xa91f0c2200000001;
constexpr uint64_t kPosition = 6;
constexpr int kMostConnections = 512;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // low..high
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Is(int percent) { return Between(1, 100) <= percent; }
  template <typename T>
  const T& OneOf(const std::vector<T>& those) {
    return those[static_cast<size_t>(Between(0, static_cast<int64_t>(those.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

struct World {
  Layout layout;
  std::vector<RankSpeed> ranks;
  Plan plan;
  bool is_socket = false;
  uint64_t socket_steps = 0;
  int64_t fault_at = 0;
  std::vector<RightAnswer> right;
  std::set<int> not_started;  // GPUs
  std::set<int> dead_at;      // ranks with a dead link
  int64_t settles_ns = 0;     // from the fault to the first look
  std::string words;
};

Layout DrawLayout(Dice* dice) {
  Layout layout;
  layout.algorithm = dice->OneOf<Algorithm>({Algorithm::kRing, Algorithm::kRing, Algorithm::kRing,
                                             Algorithm::kChain, Algorithm::kTree, Algorithm::kTree,
                                             Algorithm::kShift});
  layout.hosts = static_cast<int>(dice->OneOf<int64_t>(
      {2, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16, 31, 64, dice->Between(2, 128), dice->Is(20) ? 512 : 8}));
  layout.per_host = static_cast<int>(dice->OneOf<int64_t>({1, 1, 1, 1, 2, 4, 8}));
  while (layout.ranks() > 512) layout.per_host /= 2;
  layout.channels = static_cast<int>(dice->OneOf<int64_t>({1, 2, 2, 4, 8, 16, 32}));
  while (layout.channels > 1 && layout.channels * layout.hosts > kMostConnections) {
    layout.channels /= 2;
  }
  layout.loops =
      layout.algorithm == Algorithm::kRing ? static_cast<uint64_t>(100 / layout.ranks() + 1) : 100;
  return layout;
}

World DrawWorld(Dice* dice) {
  World world;
  world.layout = DrawLayout(dice);
  world.plan = MakePlan(world.layout);
  world.ranks.resize(static_cast<size_t>(world.layout.ranks()));
  for (RankSpeed& rank : world.ranks) {
    rank.kernel_ns = dice->Between(10'000, 60'000);
    rank.proxy_ns = dice->Between(2'000, 9'000);
    rank.starts_at = dice->Between(0, 2 * kMs);
  }
  world.is_socket = dice->Is(50);
  world.socket_steps = static_cast<uint64_t>(dice->Between(1, 6));
  world.fault_at = dice->Is(30) ? 0 : dice->Between(0, 8 * kMs);
  world.settles_ns = dice->Between(6, 40) * kSecondNs;
  return world;
}

bool IsOnNetwork(const World& world, int rank) {
  return std::any_of(
      world.plan.connections.begin(), world.plan.connections.end(),
      [&](const Connection& c) { return c.is_network && (c.src == rank || c.dst == rank); });
}

int DrawRank(const World& world, Dice* dice, bool on_network = false) {
  int rank = 0;
  do {
    rank = static_cast<int>(dice->Between(0, world.layout.ranks() - 1));
  } while (on_network && !IsOnNetwork(world, rank));
  return rank;
}

// A rank without transfers of its own over the network shows in those of its host's other ranks.
void AcceptGpu(int rank, World* world) {
  const int host = rank / world->layout.per_host;
  for (int n = 0; n < world->layout.per_host; ++n) {
    world->right.push_back({NetworkFault::kOwnGpu, host * world->layout.per_host + n, -1});
    world->right.push_back({NetworkFault::kPeerGpu, host * world->layout.per_host + n, -1});
  }
}

void StallKernel(World* world, Dice* dice) {
  const int rank = DrawRank(*world, dice);
  world->ranks[static_cast<size_t>(rank)].kernel_stops_at = world->fault_at;
  if (world->fault_at == 0) world->not_started.insert(rank);
  AcceptGpu(rank, world);
  absl::StrAppend(&world->words, " kernel of ", rank);
}

void SlowKernel(World* world, Dice* dice) {
  const int rank = DrawRank(*world, dice);
  world->ranks[static_cast<size_t>(rank)].kernel_ns = dice->Between(25, 90) * kSecondNs;
  world->settles_ns += 60 * kSecondNs;
  AcceptGpu(rank, world);
  absl::StrAppend(&world->words, " slow kernel of ", rank);
}

void KillLink(World* world, Dice* dice) {
  std::vector<std::pair<int, int>> links;
  for (const Connection& c : world->plan.connections) {
    if (c.is_network) links.emplace_back(c.src, c.dst);
  }
  const auto [src, dst] = dice->OneOf(links);
  for (Connection& c : world->plan.connections) {
    if (c.src == src && c.dst == dst) c.dies_at = world->fault_at;
  }
  world->right.push_back({NetworkFault::kLink, src, dst});
  world->dead_at.insert(dice->Is(50) ? src : dst);
  absl::StrAppend(&world->words, " link ", src, " -> ", dst);
}

void DropAtNic(World* world, Dice* dice) {
  const int rank = DrawRank(*world, dice, true);
  for (Connection& c : world->plan.connections) {
    if (c.is_network && (c.src == rank || c.dst == rank)) c.dies_at = world->fault_at;
  }
  world->right.push_back({NetworkFault::kLink, rank, -1});
  world->right.push_back({NetworkFault::kLink, -1, rank});
  world->dead_at.insert(rank);
  absl::StrAppend(&world->words, " NIC of ", rank);
}

// By states alone a receiver whose proxy thread is stopped looks like the end of a dead link.
void StopProxy(World* world, Dice* dice) {
  const int rank = DrawRank(*world, dice, true);
  world->ranks[static_cast<size_t>(rank)].proxy_stops_at = world->fault_at;
  world->right.push_back({NetworkFault::kProxy, rank, -1});
  world->right.push_back({NetworkFault::kLink, rank, -1});
  world->right.push_back({NetworkFault::kLink, -1, rank});
  absl::StrAppend(&world->words, " proxy of ", rank);
}

// Between two operations: all that it shows is the first.
void StopProxyBefore(World* world, Dice* dice) {
  world->fault_at = 0;
  StopProxy(world, dice);
  world->ranks[static_cast<size_t>(world->right.front().culprit)].earlier_steps =
      static_cast<uint64_t>(dice->Between(1, 64));
}

struct FaultKind {
  const char* name;
  std::vector<void (*)(World*, Dice*)> faults;
  int missing_percent;  // of the samples
};

const std::vector<FaultKind>& FaultTable() {
  static const auto* const kTable = new std::vector<FaultKind>{
      {"stalled_kernel", {StallKernel}, 0},
      {"slow_kernel", {SlowKernel}, 0},
      {"dead_link", {KillLink}, 0},
      {"nic_drops", {DropAtNic}, 0},
      {"stopped_proxy", {StopProxy}, 0},
      {"proxy_stopped_before", {StopProxyBefore}, 0},
      {"two_kernels", {StallKernel, StallKernel}, 0},
      {"kernel_and_link", {StallKernel, KillLink}, 0},
      {"two_links", {KillLink, KillLink}, 0},
      {"kernel_samples_missing", {StallKernel}, 10},
      {"link_samples_missing", {KillLink}, 10},
  };
  return *kTable;
}

void SlowLinks(World* world, Dice* dice) {
  for (Connection& c : world->plan.connections) c.link_ns = dice->Between(20, 900) * kMs;
}
void SlowLink(World* world, Dice* dice) {
  const int rank = DrawRank(*world, dice, true);
  for (Connection& c : world->plan.connections) {
    if (c.src == rank) c.link_ns = dice->Between(200, 900) * kMs;
  }
}
void SlowGpu(World* world, Dice* dice) {
  world->ranks[static_cast<size_t>(DrawRank(*world, dice))].kernel_ns =
      dice->Between(100, 900) * kMs;
}
void SlowGpus(World* world, Dice* dice) {
  for (RankSpeed& rank : world->ranks) rank.kernel_ns = dice->Between(50, 900) * kMs;
}
void SlowProxy(World* world, Dice* dice) {
  world->ranks[static_cast<size_t>(DrawRank(*world, dice, true))].proxy_ns =
      dice->Between(50, 300) * kMs;
}

const std::vector<FaultKind>& HealthyTable() {
  static const auto* const kTable = new std::vector<FaultKind>{
      {"slow_links", {SlowLinks}, 0},
      {"slow_link", {SlowLink}, 0},
      {"slow_gpu", {SlowGpu}, 0},
      {"slow_gpus", {SlowGpus}, 0},
      {"slow_proxy", {SlowProxy}, 0},
      {"slow_gpu_and_link", {SlowGpu, SlowLink}, 0},
      {"slow_samples_missing", {SlowGpu}, 10},
  };
  return *kTable;
}

void AddJob(const World& world, Dice* dice, NetworkCase* c) {
  const bool has_markers = dice->Is(50);
  c->job.key = JobKey("train");
  Communicator& comm = c->job.communicators[kCommunicator];
  comm.id = kCommunicator;
  comm.name = "dp";
  comm.size = world.layout.ranks();
  for (int rank = 0; rank < world.layout.ranks(); ++rank) {
    Process process;
    process.host = absl::StrCat("node-", rank / world.layout.per_host);
    process.pid = 4000 + rank;
    process.global_rank = rank;
    process.world_size = world.layout.ranks();
    process.has_segment = true;
    process.liveness = Liveness::kAlive;
    process.state = 'S';
    c->job.processes.push_back(process);
    Member& member = comm.members[rank];
    member.process = rank;
    member.device = rank % world.layout.per_host;
    member.state = MemberState::kReady;
    member.has_markers = has_markers;
    member.entered = member.returned = kPosition + 1;
    member.finished = kPosition;
    member.started = kPosition + (world.not_started.count(rank) == 0 ? 1 : 0);
  }
}

void AddVerdict(const World& world, NetworkCase* c) {
  Verdict& v = c->verdict;
  v.cause = Cause::kStalledInFlight;
  v.certainty = Certainty::kCertain;
  v.communicator = kCommunicator;
  v.communicator_name = "dp";
  v.communicator_size = world.layout.ranks();
  v.position = kPosition;
  v.call.op = Op::kAllReduce;
  v.since_ns = kStart;
  for (int rank = 0; rank < world.layout.ranks(); ++rank) {
    v.waiting_ranks.push_back(rank);
    v.waiting_processes.push_back(rank);
  }
}

// At a link that is dead, and, rarely, at one that has nothing to do with it.
void AddHostFacts(const World& world, Dice* dice, NetworkCase* c) {
  if (dice->Is(40)) return;
  std::set<int> down;
  for (const int rank : world.dead_at) {
    if (dice->Is(60)) down.insert(rank);
  }
  if (dice->Is(10)) down.insert(DrawRank(world, dice));
  for (const Process& process : c->job.processes) {
    HostFacts& facts = c->job.host_facts[process.host];
    facts.gathered_ns = kStart + 20 * kSecondNs;
    facts.probes = {{"kernel_log", "ok", ""}};
    if (down.count(process.global_rank) == 0) continue;
    HostFact fact;
    fact.kind = HostFactKind::kLinkDown;
    fact.subject = "mlx5_0 port 1";
    fact.at_ns = kStart + kSecondNs;
    facts.facts.push_back(fact);
  }
}

// Each agent looks at another moment. Returns false if nothing waits then.
bool Look(const World& world, Dice* dice, int64_t first_ns, Transfer* transfer, NetworkCase* c) {
  std::vector<std::pair<int64_t, int>> looks;
  for (int rank = 0; rank < world.layout.ranks(); ++rank) {
    looks.emplace_back(first_ns + dice->Between(0, 1500) * kMs, rank);
  }
  std::sort(looks.begin(), looks.end());
  bool waits = false;
  for (const auto& [at, rank] : looks) {
    transfer->RunUntil(at);
    NetworkSample sample;
    sample.communicator = kCommunicator;
    sample.rank = sample.process = rank;
    sample.states = transfer->StatesOf(rank);
    for (NetworkState& state : sample.states) {
      waits = waits || state.wait != NetworkWait::kNone;
      state.since_ns = state.wait == NetworkWait::kNone ? 0 : kStart + state.since_ns;
    }
    c->job.processes[static_cast<size_t>(rank)].stacks_ns = kStart + at;
    c->samples.push_back(std::move(sample));
  }
  c->verdict.waited_ns = looks.back().first;
  std::shuffle(c->samples.begin(), c->samples.end(), std::mt19937_64(7));
  return waits && !transfer->IsDone();
}

bool IsNear(const World& world, int rank) {
  return std::any_of(world.right.begin(), world.right.end(), [&](const RightAnswer& answer) {
    if (answer.culprit == rank || answer.peer == rank) return true;
    return std::any_of(world.plan.connections.begin(), world.plan.connections.end(),
                       [&](const Connection& c) {
                         return (c.src == answer.culprit && c.dst == rank) ||
                                (c.dst == answer.culprit && c.src == rank);
                       });
  });
}

void LoseSamples(const World& world, int percent, Dice* dice, NetworkCase* c) {
  for (size_t i = c->samples.size(); percent != 0 && i-- > 0;) {
    if (!dice->Is(percent)) continue;
    if (IsNear(world, c->samples[i].rank)) c->may_be_silent = true;
    c->samples.erase(c->samples.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string ShapeInWords(const World& world) {
  const char* const kNames[] = {"ring", "chain", "tree", "shift"};
  return absl::StrCat(kNames[static_cast<size_t>(world.layout.algorithm)], " of ",
                      world.layout.hosts, " x ", world.layout.per_host, " ranks, ",
                      world.layout.channels, " channels, ",
                      world.is_socket ? "sockets:" : "verbs:", world.words);
}

NetworkCase Make(uint64_t seed, const std::vector<FaultKind>& table, bool is_fault,
                 const std::string& wanted) {
  for (uint64_t attempt = 0;; ++attempt) {
    Dice dice(seed * 1'000'003 + attempt);
    const FaultKind* kind = &table[seed % table.size()];
    for (const FaultKind& known : table) {
      if (known.name == wanted) kind = &known;
    }
    World world = DrawWorld(&dice);
    for (const auto fault : kind->faults) fault(&world, &dice);
    if (!is_fault) world.right.clear();
    NetworkCase c;
    c.kind = kind->name;
    c.right = world.right;
    c.shape = ShapeInWords(world);
    AddJob(world, &dice, &c);
    AddVerdict(world, &c);
    AddHostFacts(world, &dice, &c);
    Transfer transfer(world.plan.connections, world.plan.parts, world.ranks, world.is_socket,
                      world.socket_steps);
    const int64_t first =
        is_fault ? world.fault_at + world.settles_ns : dice.Between(3'000, 15'000) * kMs;
    if (!Look(world, &dice, first, &transfer, &c)) continue;
    LoseSamples(world, kind->missing_percent, &dice, &c);
    return c;
  }
}

std::vector<std::string> NamesOf(const std::vector<FaultKind>& table) {
  std::vector<std::string> names;
  for (const FaultKind& kind : table) names.emplace_back(kind.name);
  return names;
}

}  // namespace

const std::vector<std::string>& NetworkFaultKinds() {
  static const auto* const kNames = new std::vector<std::string>(NamesOf(FaultTable()));
  return *kNames;
}

const std::vector<std::string>& HealthyNetworkKinds() {
  static const auto* const kNames = new std::vector<std::string>(NamesOf(HealthyTable()));
  return *kNames;
}

NetworkCase MakeNetworkFault(uint64_t seed, const std::string& kind) {
  return Make(seed, FaultTable(), true, kind);
}

NetworkCase MakeHealthyNetwork(uint64_t seed, const std::string& kind) {
  return Make(seed, HealthyTable(), false, kind);
}

NetworkScore ScoreNetwork(const NetworkCase& c, const Verdict& verdict) {
  NetworkScore score;
  const NetworkWalk& walk = verdict.network;
  score.named = walk.fault != NetworkFault::kNone;
  score.certain = score.named && verdict.certainty == Certainty::kCertain;
  for (const RightAnswer& answer : c.right) {
    const bool is_rank = answer.culprit == -1 || answer.culprit == walk.culprit;
    const bool is_peer = answer.peer == -1 || answer.peer == walk.peer;
    if (!score.named || !is_rank || !is_peer) continue;
    // A link has two ends: who is named as one of them is named rightly for a fault of a link only.
    if (answer.fault == NetworkFault::kLink && walk.fault != NetworkFault::kLink) continue;
    score.right = true;
    score.fault_right = score.fault_right || answer.fault == walk.fault;
  }
  if (!score.named) score.right = c.right.empty() || c.may_be_silent;
  score.wrong_certain = score.certain && !score.right;
  return score;
}

}  // namespace rollcall::corpus
