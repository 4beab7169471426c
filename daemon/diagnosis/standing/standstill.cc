// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/standstill.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/diagnosis/standing/stand_graph.h"
#include "daemon/diagnosis/standing/standing_ranks.h"
#include "daemon/model/wait_frames.h"
#include "daemon/words/evidence.h"
#include "daemon/words/places.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kDescribedRanks = 8;
constexpr int32_t kNoRank = -1;
constexpr int32_t kSeveral = -2;

const Process& At(const JobState& job, int32_t process) {
  return job.processes[static_cast<size_t>(process)];
}

// Where a rank's wait leads to.
struct End {
  size_t component = 0;      // of the nodes that wait for nobody but each other
  bool is_of_other = false;  // of other ranks
};

// The program's name, of one that waits for work on other hosts.
bool IsOfAnotherHost(const std::string& name) {
  static constexpr const char* kNames[] = {"srun", "sbatch", "salloc", "ssh", "kubectl", "qsub"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

class Judge {
 public:
  Judge(const JobState& job, const StandingRanks& ranks, bool is_look)
      : job_(job), ranks_(ranks), is_look_(is_look), graph_(BuildStandGraph(job, ranks.processes)) {
    for (size_t i = 0; i < Count(); ++i) rank_of_[ranks.processes[i]] = i;
    FindOwners();
    FindEnds();
  }

  // False: it is no hang, as far as the stacks show.
  bool Run(Verdict* verdict) {
    if (IsAnyOutOfSight() || IsAnyEndIdle()) return false;
    const bool found = DoAllWriteAtOneLine() || BlameStopped() || BlameUnconnected() ||
                       BlameOneEnd() || BlameEnded() || BlameMinority() || BlameOwn() || TellAll();
    if (!found || MayBeInStep() || MayAnswer() || MayServeMpi()) return false;
    Describe(verdict);
    return true;
  }

 private:
  size_t Count() const { return ranks_.processes.size(); }
  const StandNode& Rank(size_t i) const { return graph_.nodes[i]; }

  // A person, a GPU, another host or a server without requests.
  bool IsAnyOutOfSight() const {
    for (size_t i = 0; i < Count(); ++i) {
      const StandKind kind = Rank(i).in.kind;
      if (kind == StandKind::kPerson || (UsesItsGpu(i) && !is_look_)) return true;
      if (Rank(i).is_idle || MayServe(i)) return true;
      if (kind == StandKind::kChild && WaitsForOneOutOfSight(i)) return true;
    }
    return false;
  }

  bool UsesItsGpu(size_t i) const {
    const std::vector<ThreadPlace>& threads = At(job_, ranks_.processes[i]).standing->threads;
    return Rank(i).in.kind == StandKind::kGpu ||
           std::any_of(threads.begin(), threads.end(), [](const ThreadPlace& thread) {
             return StandsIn(thread.place).kind == StandKind::kGpu;
           });
  }

  // The engine of a server: its main thread waits for what the threads of the server bring, and the
  // others for the work that it hands on. No rank owes another one anything.
  bool MayServe(size_t i) const {
    const StandKind kind = Rank(i).in.kind;
    const bool takes_work = kind == StandKind::kQueue || kind == StandKind::kEvent ||
                            kind == StandKind::kCondition || kind == StandKind::kFuture;
    if (!takes_work || !At(job_, ranks_.processes[i]).standing->has_server) return false;
    for (size_t other = 0; other < Count(); ++other) {
      const std::vector<size_t>& to = Rank(other).waits_for;
      if (std::find(to.begin(), to.end(), i) != to.end()) return false;
      if (IsNoWaitForWork(Rank(other).in)) return false;
    }
    return true;
  }

  // A launcher or a script waits for the program that it has started.
  bool WaitsForOneOutOfSight(size_t i) const {
    const std::vector<StandingChild>& children = At(job_, ranks_.processes[i]).standing->children;
    return std::any_of(children.begin(), children.end(), [](const StandingChild& child) {
      if (IsOfAnotherHost(child.name)) return true;
      if (child.places.empty()) return false;
      const StandKind kind = StandsIn(child.places.front()).kind;
      return kind == StandKind::kPerson || kind == StandKind::kGpu ||
             IsIdlePlace(child.places.front());
    });
  }

  void FindOwners() {
    for (const std::vector<size_t>& component : graph_.components) {
      std::set<int32_t> owners;
      for (const size_t node : component) owners.insert(graph_.nodes[node].process);
      owners_.push_back(owners.size() == 1 ? *owners.begin() : kSeveral);
    }
  }

  // A component comes after those that it waits for.
  void FindEnds() {
    std::vector<size_t> end_of(graph_.components.size());
    for (size_t id = 0; id < graph_.components.size(); ++id) {
      end_of[id] = id;
      for (const size_t node : graph_.components[id]) {
        for (const size_t to : graph_.nodes[node].waits_for) {
          const size_t other = graph_.component_of[to];
          if (other != id) end_of[id] = end_of[other];
        }
      }
    }
    for (size_t i = 0; i < Count(); ++i) {
      const size_t own = graph_.component_of[i];
      const size_t end = end_of[own];
      ends_.push_back({end, end != own && owners_[end] != Rank(i).process});
      if (ends_.back().is_of_other) awaited_.insert(end);
    }
  }

  // Others wait for a server, and it waits for requests.
  bool IsAnyEndIdle() const {
    return std::any_of(awaited_.begin(), awaited_.end(), [&](size_t end) {
      const std::vector<size_t>& nodes = graph_.components[end];
      return std::all_of(nodes.begin(), nodes.end(),
                         [&](size_t node) { return graph_.nodes[node].is_idle; });
    });
  }

  // One rank waits to send by ZeroMQ. Of the others, some have no connection at all.
  bool BlameUnconnected() {
    bool any_sends = false;
    std::set<size_t> unconnected;
    for (size_t i = 0; i < Count(); ++i) {
      if (Rank(i).in.kind != StandKind::kZeroMq) return false;
      any_sends = any_sends || Writes(Rank(i).in);
      if (!Rank(i).standing->sockets.known) unconnected.insert(i);
    }
    if (!any_sends || unconnected.empty() || 2 * unconnected.size() > Count()) return false;
    culprits_ = unconnected;
    stand_.shape = StandShape::kElsewhere;
    return true;
  }

  // A service that has been started beside the ranks, and that none of its threads lets go on.
  bool IsAStuckService(size_t end) const {
    const std::vector<size_t>& nodes = graph_.components[end];
    if (nodes.size() != 1 || graph_.nodes[nodes.front()].child == nullptr) return false;
    const StandingChild& service = *graph_.nodes[nodes.front()].child;
    return !service.places.empty() && !service.hides_a_wait &&
           std::all_of(service.places.begin(), service.places.end(), [](const StackPlace& place) {
             const StandKind kind = StandsIn(place).kind;
             return WhomItIsFor(kind) == StandFor::kOwn && kind != StandKind::kSleep &&
                    !IsIdlePlace(place);
           });
  }

  // All wait for one process that is no rank.
  bool TellService() {
    const bool is_one = std::all_of(ends_.begin(), ends_.end(), [this](const End& end) {
      return end.component == ends_.front().component;
    });
    if (!is_one || !IsAStuckService(ends_.front().component)) return false;
    stand_.shape = StandShape::kOutside;
    return true;
  }

  // Who writes waits for a reader, and there is none: the rank that should read writes, too.
  bool DoAllWriteAtOneLine() {
    if (!AreAllAtOneLine()) return false;
    for (size_t i = 0; i < Count(); ++i) {
      const bool puts = absl::EndsWith(Rank(i).inside, ".put");  // a proxy's function, too
      if (!puts && !Writes(Rank(i).in)) return false;
    }
    return TellAll();
  }

  // Ranks that others wait for, by the pipes, sockets and locks that they wait at.
  bool BlameOneEnd() {
    // Of most processes that are no ranks, and no rank's children, nothing is known.
    const bool is_outside = std::any_of(awaited_.begin(), awaited_.end(),
                                        [&](size_t end) { return owners_[end] == kNoRank; });
    if (is_outside) return TellService();
    std::set<size_t> rings;  // of several ranks, for which nobody else need wait
    for (size_t i = 0; i < Count(); ++i) {
      if (owners_[ends_[i].component] == kSeveral) rings.insert(ends_[i].component);
    }
    std::set<size_t> ends = awaited_;
    ends.insert(rings.begin(), rings.end());
    if (ends.empty()) return false;
    for (const size_t id : ends) BlameComponent(id);
    stand_.others_wait_for_them = !awaited_.empty();
    if (culprits_.size() == Count() && AreAllAtOneLine()) culprits_.clear();
    if (culprits_.empty()) stand_ = {};
    if (culprits_.empty()) stand_.shape = StandShape::kAll;
    return !culprits_.empty() || MayBeNoIdleness();
  }

  void BlameComponent(size_t id) {
    const std::vector<size_t>& nodes = graph_.components[id];
    const size_t hub = FindHub(nodes);
    const std::set<size_t> behind = FindBehind(nodes, hub);
    for (const size_t node : nodes) {
      if (hub != graph_.nodes.size() && node != hub && behind.count(node) == 0) continue;
      if (graph_.nodes[node].process >= 0)
        culprits_.insert(rank_of_.at(graph_.nodes[node].process));
    }
    if (owners_[id] == kSeveral && CountRanks(nodes) > 1) {
      const bool is_hub = hub != graph_.nodes.size() && behind.empty();
      stand_.shape = is_hub ? StandShape::kHub : StandShape::kRing;
    } else if (IsBehindAServer(nodes)) {
      stand_.shape = StandShape::kOwnServer;
    } else {
      const bool has_child =
          owners_[id] != kSeveral && (nodes.size() > 1 || graph_.nodes[nodes.front()].is_child);
      stand_.shape = has_child ? StandShape::kChild : StandShape::kLast;
    }
  }

  size_t CountRanks(const std::vector<size_t>& nodes) const {
    std::set<int32_t> ranks;
    for (const size_t node : nodes) ranks.insert(graph_.nodes[node].process);
    ranks.erase(kNoRank);
    return ranks.size();
  }

  // The one for which all others of a ring wait, and no two of these for each other. The number of
  // nodes, if there is none.
  size_t FindHub(const std::vector<size_t>& nodes) const {
    const size_t none = graph_.nodes.size();
    if (nodes.size() < 3) return none;
    for (const size_t hub : nodes) {
      const bool is_hub = std::all_of(nodes.begin(), nodes.end(), [&](size_t node) {
        const std::vector<size_t>& to = graph_.nodes[node].waits_for;
        return node == hub || (to.size() == 1 && to.front() == hub);
      });
      if (is_hub) return hub;
    }
    return none;
  }

  // Of those that wait for the answer of a hub, by connections of a library: who has received less
  // than the others. It lacks an answer, and the hub waits for it.
  std::set<size_t> FindBehind(const std::vector<size_t>& nodes, size_t hub) const {
    std::set<size_t> behind;
    double least = 0, most = 0;
    for (const size_t node : nodes) {
      if (node == hub) continue;
      const Standing* standing = hub == graph_.nodes.size() ? nullptr : graph_.nodes[node].standing;
      if (standing == nullptr || standing->sockets.received_bytes == 0) return {};
      const double received = standing->sockets.received_bytes;
      if (most == 0 || received < least) behind.clear();
      if (most == 0 || received < least) least = received;
      if (received == least) behind.insert(node);
      most = std::max(most, received);
    }
    if (most == least || 2 * behind.size() > nodes.size() - 1) return {};
    return behind;
  }

  // A rank waits for what a process brings that it has started for all, and by another thread for
  // that process.
  bool IsBehindAServer(const std::vector<size_t>& nodes) const {
    const bool is_of_thread = std::any_of(nodes.begin(), nodes.end(), [this](size_t node) {
      return graph_.nodes[node].is_by_thread && !graph_.nodes[node].is_child &&
             WhomItIsFor(graph_.nodes[node].in.kind) == StandFor::kOthers;
    });
    return is_of_thread && FindChild(nodes) != nullptr;
  }

  const StandNode* FindChild(const std::vector<size_t>& nodes) const {
    const auto at = std::find_if(nodes.begin(), nodes.end(),
                                 [this](size_t node) { return graph_.nodes[node].is_child; });
    return at == nodes.end() ? nullptr : &graph_.nodes[*at];
  }

  bool BlameStopped() {
    if (ranks_.stopped.empty()) return false;
    stand_.shape = StandShape::kStopped;
    return true;
  }

  // Ranks that all spin at one line look alike in a job that goes on.
  bool MayBeInStep() const { return is_look_ && stand_.shape == StandShape::kAll && AnySpins(); }

  // MPI's calls are recorded, and judged by the messages. Here its ranks wait for one that only
  // sleeps: a master, or a step that rests.
  bool MayServeMpi() const {
    if (is_look_ || culprits_.empty() || culprits_.size() == Count()) return false;
    if (stand_.others_wait_for_them) return false;
    for (size_t i = 0; i < Count(); ++i) {
      const StandKind kind = Rank(i).in.kind;
      const bool is_culprit = culprits_.count(i) != 0;
      const bool sleeps = kind == StandKind::kSleep && FindLock(i).empty();
      if (is_culprit ? !sleeps : kind != StandKind::kMpi) return false;
    }
    return true;
  }

  bool AnySpins() const {
    for (size_t i = 0; i < Count(); ++i) {
      if (At(job_, ranks_.processes[i]).standing->spins) return true;
    }
    return false;
  }

  bool BlameEnded() {
    if (ranks_.ended.empty()) return false;
    // Those that are left may serve others now.
    if (HaveAllEndedWell() && !AnyWaitsForOthers() && !MayBeNoIdleness()) return false;
    stand_.shape = StandShape::kEnded;
    return true;
  }

  bool HaveAllEndedWell() const {
    return std::all_of(ranks_.ended.begin(), ranks_.ended.end(), [this](int32_t process) {
      return At(job_, process).liveness == Liveness::kExited && At(job_, process).exit_code <= 0;
    });
  }

  std::map<uint64_t, std::vector<size_t>> ByPosition() const {
    std::map<uint64_t, std::vector<size_t>> groups;
    for (size_t i = 0; i < Count(); ++i) groups[Rank(i).position].push_back(i);
    return groups;
  }

  bool AreAllAtOneLine() const {
    for (size_t i = 1; i < Count(); ++i) {
      if (Rank(i).at != Rank(0).at || Rank(i).at.empty()) return false;
    }
    return true;
  }

  // Most wait at one place: the others are elsewhere.
  bool BlameMinority() {
    const auto groups = ByPosition();
    if (groups.size() < 2 || AllWaitForLocksOfFiles()) return false;
    for (const auto& [position, ranks] : groups) {
      if (2 * ranks.size() <= Count() || position == 0) continue;
      // Those that stand by themselves hold up the others, however many they are.
      if (WhomItIsFor(Rank(ranks.front()).in.kind) == StandFor::kOwn && AnyWaitsForOthers()) break;
      const std::set<size_t> most(ranks.begin(), ranks.end());
      for (size_t i = 0; i < Count(); ++i) {
        if (most.count(i) == 0) culprits_.insert(i);
      }
      stand_.shape = StandShape::kElsewhere;
      return true;
    }
    return false;
  }

  // Each waits for a holder, wherever in the program it asks for the lock.
  bool AllWaitForLocksOfFiles() const {
    for (size_t i = 0; i < Count(); ++i) {
      if (Rank(i).in.kind != StandKind::kFileLock) return false;
    }
    return true;
  }

  bool AnyWaitsForOthers() const {
    for (size_t i = 0; i < Count(); ++i) {
      const StandKind kind = Rank(i).in.kind;
      if (kind == StandKind::kGpu && is_look_) return true;
      if (WhomItIsFor(kind) == StandFor::kOthers && kind != StandKind::kPipe) return true;
    }
    return false;
  }

  bool BlameOwn() {
    bool is_any_ring = false;
    for (size_t i = 0; i < Count(); ++i) {
      const bool is_ring = IsInARingOfItsOwn(i);
      is_any_ring = is_any_ring || is_ring;
      if (is_ring || WhomItIsFor(Rank(i).in.kind) == StandFor::kOwn) culprits_.insert(i);
    }
    if (culprits_.size() == Count()) culprits_.clear();
    stand_.shape = is_any_ring ? StandShape::kChild : StandShape::kElsewhere;
    if (culprits_.size() == 1 && IsBehindAServer(ComponentOf(*culprits_.begin()))) {
      stand_.shape = StandShape::kOwnServer;
    }
    if (!culprits_.empty()) return true;
    if (ByPosition().size() < 2) return false;
    for (size_t i = 0; i < Count(); ++i) culprits_.insert(i);  // nothing decides
    return MayBeNoIdleness();
  }

  const std::vector<size_t>& ComponentOf(size_t rank) const {
    return graph_.components[graph_.component_of[rank]];
  }

  // It and what it has started wait for each other.
  bool IsInARingOfItsOwn(size_t i) const {
    const size_t end = ends_[i].component;
    return owners_[end] == Rank(i).process && graph_.components[end].size() > 1;
  }

  bool TellAll() {
    culprits_.clear();
    stand_.shape = StandShape::kAll;
    return MayBeNoIdleness();
  }

  // Ranks that all read what somebody brings may be without work, and what sleeps may wake.
  bool MayBeNoIdleness() const {
    bool may_wait = false;
    for (size_t i = 0; i < Count(); ++i) {
      if (HasASleeper(i)) return false;
      may_wait = may_wait || IsNoWaitForWork(Rank(i).in);
    }
    return may_wait;
  }

  bool HasASleeper(size_t i) const {
    const std::vector<ThreadPlace>& threads = At(job_, ranks_.processes[i]).standing->threads;
    return std::any_of(threads.begin(), threads.end(), [](const ThreadPlace& thread) {
      return StandsIn(thread.place).kind == StandKind::kSleep;
    });
  }

  static bool IsNoWaitForWork(const StandFunction& in) {
    switch (in.kind) {
      case StandKind::kSemaphore:
      case StandKind::kLock:
      case StandKind::kProcessLock:
      case StandKind::kFileLock:
      case StandKind::kDatabase:
      case StandKind::kBarrier:
      case StandKind::kMpi:
      case StandKind::kMpiWindow:
      case StandKind::kGloo:
      case StandKind::kNccl:
      case StandKind::kJax:
      case StandKind::kJaxBarrier:
      case StandKind::kJaxStart:
      case StandKind::kJaxEnd:
      case StandKind::kChild:
      case StandKind::kStorage:
      case StandKind::kGrpc:
        return true;
      default:
        return Writes(in);
    }
  }

  static bool Writes(const StandFunction& in) {
    return absl::EndsWith(in.name, "put") || absl::StrContains(in.name, "write") ||
           absl::StrContains(in.name, "send");
  }

  static bool IsLock(StandKind kind) {
    return kind == StandKind::kLock || kind == StandKind::kSemaphore;
  }

  bool IsInAHandler(size_t i) const {
    return HasWait(At(job_, ranks_.processes[i]).standing->place.functions, waits::kSignalHandler);
  }

  bool WaitsForTwoLocks(size_t i) const {
    const std::vector<ThreadPlace>& threads = At(job_, ranks_.processes[i]).standing->threads;
    return IsLock(Rank(i).in.kind) &&
           std::any_of(threads.begin(), threads.end(), [](const ThreadPlace& thread) {
             return IsLock(StandsIn(thread.place).kind);
           });
  }

  void Describe(Verdict* verdict) {
    std::vector<size_t> waiting;
    for (size_t i = 0; i < Count(); ++i) {
      if (culprits_.count(i) == 0) waiting.push_back(i);
    }
    if (waiting.empty()) waiting.assign(culprits_.begin(), culprits_.end());
    for (const size_t i : waiting) {
      verdict->waiting_ranks.push_back(Rank(i).rank);
      verdict->waiting_processes.push_back(ranks_.processes[i]);
    }
    AddCulprits(verdict);
    const size_t first = culprits_.empty() ? Representative() : *culprits_.begin();
    AddPlacesOfCulprits();
    stand_.in = InOf(first).kind;
    stand_.others_in = Rank(waiting.front()).in.kind;
    stand_.others = OthersInWords(first);
    stand_.on = FindLock(first);
    stand_.writes = Writes(InOf(first));
    NameServer(first);
    stand_.in_handler = IsInAHandler(first);
    stand_.two_locks = !culprits_.empty() && WaitsForTwoLocks(first);
    verdict->standstill = stand_;
    verdict->certainty = CanBeLikely() ? Certainty::kLikely : Certainty::kPossible;
    if (IsAnyUnseen()) verdict->missing_evidence.push_back("some of the ranks are not seen");
    AddEvidence(verdict);
  }

  // The thread of a culprit that counts: the one that should answer the others.
  const StackPlace* PlaceOf(size_t i) const {
    if (stand_.shape == StandShape::kOwnServer) return FindChild(ComponentOf(i))->place;
    const Standing& standing = *Rank(i).standing;
    const bool answers = stand_.shape == StandShape::kLast && AnyWaitsIn(StandKind::kGrpc);
    const ThreadPlace* handler = answers ? FindHandler(standing) : nullptr;
    return handler == nullptr ? Rank(i).place : &handler->place;
  }

  bool AnyWaitsIn(StandKind kind) const {
    for (size_t i = 0; i < Count(); ++i) {
      if (ends_[i].is_of_other && Rank(i).in.kind == kind) return true;
    }
    return false;
  }

  // The thread that handles the requests of the others sleeps in its work: it goes on by itself.
  bool MayAnswer() const {
    return std::any_of(culprits_.begin(), culprits_.end(), [this](size_t i) {
      return PlaceOf(i) != Rank(i).place && InOf(i).kind == StandKind::kSleep;
    });
  }

  StandFunction InOf(size_t i) const {
    const bool is_other = stand_.shape == StandShape::kLast && PlaceOf(i) != Rank(i).place;
    return is_other ? StandsIn(*PlaceOf(i)) : Rank(i).in;
  }

  void AddPlacesOfCulprits() {
    for (const size_t i : culprits_) {
      const StackPlace* place = PlaceOf(i);
      const bool is_main = place == nullptr || place == &Rank(i).standing->place;
      stand_.places.push_back(is_main ? StackPlace() : *place);
    }
  }

  void NameServer(size_t first) {
    if (stand_.shape != StandShape::kOwnServer) return;
    const StandNode& server = *FindChild(ComponentOf(first));
    stand_.server = absl::StrCat("child process ", server.pid,
                                 server.name.empty() ? "" : absl::StrCat(" (", server.name, ")"));
  }

  // Both may wait for each other, and nothing shows who does: a message may be lost on its way.
  bool IsOneWaitOfAll() const {
    if (stand_.shape != StandShape::kElsewhere || !IsDirected(Rank(0).in.kind)) return false;
    for (size_t i = 0; i < Count(); ++i) {
      if (Rank(i).in.kind != Rank(0).in.kind || Writes(Rank(i).in)) return false;
    }
    return true;
  }

  // A culprit and a process of no rank wait for each other.
  bool WaitsWithAnOutsider() const {
    return std::any_of(culprits_.begin(), culprits_.end(), [this](size_t i) {
      const std::vector<size_t>& nodes = ComponentOf(i);
      return std::any_of(nodes.begin(), nodes.end(),
                         [this](size_t node) { return graph_.nodes[node].process == kNoRank; });
    });
  }

  // Somebody in particular should answer.
  static bool IsDirected(StandKind kind) {
    switch (kind) {
      case StandKind::kPipe:
      case StandKind::kSocket:
      case StandKind::kProcessQueue:
      case StandKind::kManager:
      case StandKind::kZeroMq:
      case StandKind::kGrpc:
      case StandKind::kMessageQueue:
      case StandKind::kRay:
        return true;
      default:
        return false;
    }
  }

  // Ranks that nobody sees may work, and a rank that sleeps may wake.
  bool CanBeLikely() const {
    if (stand_.shape == StandShape::kEnded || stand_.shape == StandShape::kStopped) return true;
    if (AnySpins()) return false;
    if (culprits_.empty() || culprits_.size() == Count() || IsAnyUnseen()) return false;
    if (IsOneWaitOfAll() || WaitsWithAnOutsider()) return false;
    return std::none_of(culprits_.begin(), culprits_.end(), [this](size_t i) {
      return Rank(i).in.kind == StandKind::kSleep && !stand_.others_wait_for_them &&
             FindLock(i).empty();
    });
  }

  bool IsAnyUnseen() const {
    int32_t world_size = 0;
    for (const int32_t process : ranks_.processes) {
      world_size = std::max(world_size, At(job_, process).world_size);
    }
    return static_cast<size_t>(world_size) > Count() + ranks_.ended.size() + ranks_.stopped.size();
  }

  void AddCulprits(Verdict* verdict) const {
    for (const size_t i : culprits_) {
      verdict->culprits.push_back(MakeCulprit(job_, ranks_.processes[i], Rank(i).rank, nullptr));
      if (verdict->culprits.size() > kDescribedRanks) continue;
      absl::StrAppend(&verdict->stack_words, At(job_, ranks_.processes[i]).stack_words, " ");
    }
    if (stand_.shape == StandShape::kStopped) {
      for (const int32_t process : ranks_.stopped) {
        verdict->culprits.push_back(
            MakeCulprit(job_, process, At(job_, process).global_rank, nullptr));
      }
    }
    if (stand_.shape != StandShape::kEnded) return;
    for (const int32_t process : ranks_.ended) {
      Culprit culprit = MakeCulprit(job_, process, At(job_, process).global_rank, nullptr);
      culprit.ending = DescribeEnding(job_, process, nullptr);
      verdict->culprits.push_back(std::move(culprit));
    }
  }

  // Of ranks that all wait in one place, the one whose wait says most.
  size_t Representative() const {
    for (const bool is_for_others : {true, false}) {
      for (size_t i = 0; i < Count(); ++i) {
        const bool fits = !is_for_others || WhomItIsFor(Rank(i).in.kind) == StandFor::kOthers;
        if (fits && IsNoWaitForWork(Rank(i).in)) return i;
      }
    }
    return 0;
  }

  // "its child 4711 (cat)", "rank 2", "process 812 (python)".
  std::string OthersInWords(size_t i) const {
    for (const size_t to : Rank(i).waits_for) {
      const StandNode& other = graph_.nodes[to];
      const std::string name = other.name.empty() ? "" : absl::StrCat(" (", other.name, ")");
      if (other.is_child && other.process == Rank(i).process) {
        const std::string in = StandKindInWords(other.in.kind);
        const bool is_a_wait = !in.empty() && other.in.kind != StandKind::kSleep &&
                               WhomItIsFor(other.in.kind) != StandFor::kNobody;
        return absl::StrCat("its child ", other.pid, name,
                            is_a_wait ? absl::StrCat(", which waits in ", in) : "");
      }
      if (other.is_child) {
        return absl::StrCat("child ", other.pid, name, " of rank ", other.rank);
      }
      return other.process >= 0 ? absl::StrCat("rank ", other.rank)
                                : absl::StrCat("process ", other.pid, name);
    }
    return "";
  }

  // The file that it waits to lock, or that others wait to lock and it holds.
  std::string FindLock(size_t i) const {
    if (!Rank(i).on.empty()) return Rank(i).on;
    for (size_t other = 0; other < Count(); ++other) {
      const std::vector<size_t>& to = Rank(other).waits_for;
      const bool is_for_it = std::find(to.begin(), to.end(), i) != to.end();
      if (is_for_it && !Rank(other).on.empty()) return Rank(other).on;
    }
    return "";
  }

  void AddEvidence(Verdict* verdict) const {
    for (size_t i = 0; i < std::min(Count(), kDescribedRanks); ++i) {
      const StandNode& node = Rank(i);
      const std::string for_whom = OthersInWords(i);
      verdict->evidence.push_back(
          absl::StrCat("rank ", node.rank, ": ",
                       node.in.name.empty() ? "waits" : absl::StrCat("in ", node.in.name),
                       *StandKindInWords(node.in.kind) == '\0'
                           ? ""
                           : absl::StrCat(" (", StandKindInWords(node.in.kind), ")"),
                       for_whom.empty() ? "" : absl::StrCat(" for ", for_whom)));
    }
  }

  const JobState& job_;
  const StandingRanks& ranks_;
  const bool is_look_;
  const StandGraph graph_;
  std::map<int32_t, size_t> rank_of_;  // by process
  std::vector<int32_t> owners_;  // by component: the process of all its nodes, or one of the above
  std::vector<End> ends_;        // by rank
  std::set<size_t> awaited_;     // components of other ranks where waits end
  std::set<size_t> culprits_;    // ranks
  Standstill stand_;
};

}  // namespace

std::optional<Verdict> JudgeStandstill(const JobState& job, int64_t now_ns, const Limits& limits) {
  if (job.offline || limits.watches_calls_only) return std::nullopt;
  const auto ranks = FindStandingRanks(job, now_ns, limits);
  if (!ranks || ranks->seen_ns - ranks->since_ns < limits.suspect_after_ns) return std::nullopt;
  Verdict verdict;
  verdict.cause = Cause::kStandstill;
  if (!Judge(job, *ranks, limits.is_look).Run(&verdict)) return std::nullopt;
  verdict.since_ns = ranks->since_ns;
  verdict.waited_ns = ranks->seen_ns - ranks->since_ns;
  verdict.evidence_age_ns = now_ns - ranks->seen_ns;
  verdict.missing_evidence.push_back(
      "no recorded call waits: the verdict rests on samples of the stacks");
  return verdict;
}

}  // namespace rollcall
