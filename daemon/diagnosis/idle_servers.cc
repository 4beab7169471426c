// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/idle_servers.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "daemon/model/progress.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {
namespace {

using Names = std::vector<absl::string_view>;

struct ServerLoop {
  absl::string_view module;  // of Python; "": a function of another language
  absl::string_view function;
  bool has_own_handlers = false;  // the program starts the threads that handle requests
};

// Between a loop and the kernel stands only what waits.
constexpr ServerLoop kLoops[] = {
    {"socketserver", "serve_forever"},    // http.server, wsgiref, xmlrpc, werkzeug, Flask
    {"base_events", "_run_once"},         // asyncio: uvicorn, aiohttp, tornado, gRPC's aio, Jupyter
    {"_server", "wait_for_termination"},  // gRPC
    {"_server", "_wait_for_termination"},  //
    {"sync", "wait"},                      // gunicorn
    {"baseserver", "serve_forever"},       // gevent
    {"base", "mainLoop"},                  // twisted
    {"ioloop", "start"},                   // old tornado
    {"asyncore", "loop"},                  //
    {"wasyncore", "loop"},                 // waitress
    {"wspbus", "block"},                   // cherrypy
    {"worker", "main_loop"},               // an actor of Ray
    {"socket", "accept", true},            // and multiprocessing.connection, thrift, rpyc
    {"", "uv_run"},                        // uvloop, libuv
    {"", "accept", true},                  //
    {"", "accept4", true},                 //
    {"", "grpc::Server::Wait"},            //
    {"", "boost::asio::io_context::run"},  //
    {"", "boost::asio::detail::scheduler::run"},
    {"", "asio::io_context::run"},         //
    {"", "asio::detail::scheduler::run"},  //
    {"", "event_base_loop"},               // libevent
    {"", "ev_run"},                        // libev
};

// The last words of names, which are Python's if they have a module.
constexpr absl::string_view kWaits[] = {
    "select", "_select", "poll",        "_poll",
    "wait",   "_wait",   "_wait_once",  "acquire",
    "accept", "_accept", "doPoll",      "doSelect",
    "sleep",  "join",    "doIteration", "_wait_for_tstate_lock"};

constexpr absl::string_view kKernelWaits[] = {"poll",  "select", "accept",        "wait",
                                              "futex", "sleep",  "epoll_dispatch"};

// Threads of a server's own that handle a request, while a function of the program is on their
// stacks.
constexpr absl::string_view kHandlers[] = {
    "process_request_thread",                   // socketserver
    "_WorkItem.run",           " thread.run ",  // concurrent.futures: gRPC, asyncio's executor
    "WorkerThread.run",                         // anyio: starlette, FastAPI
    "_unary_response_in_pool",                  // gRPC
    "handle_request",                           // gunicorn and others
};

absl::string_view LastWord(absl::string_view name) { return name.substr(name.rfind('.') + 1); }

absl::string_view FirstWord(absl::string_view name) { return name.substr(0, name.find('.')); }

bool IsOfPython(absl::string_view name) {
  return absl::StrContains(name, '.') && !absl::StrContains(name, "::");
}

const ServerLoop* LoopNamed(absl::string_view name) {
  for (const ServerLoop& loop : kLoops) {
    const bool fits = loop.module.empty() ? name == loop.function
                                          : IsOfPython(name) && FirstWord(name) == loop.module &&
                                                LastWord(name) == loop.function;
    if (fits) return &loop;
  }
  return nullptr;
}

bool OnlyWaits(absl::string_view name) {
  if (!IsOfPython(name)) {
    // What the interpreter and the C library call says nothing; a function of the program does.
    return !absl::StrContains(name, "::") || absl::StrContains(name, "asio::") ||
           absl::StrContains(name, "std::") || absl::StrContains(name, "grpc") ||
           absl::StrContains(name, "ray::");
  }
  return std::any_of(std::begin(kWaits), std::end(kWaits),
                     [&](absl::string_view wait) { return LastWord(name) == wait; });
}

// A function of C that waits. Inside a loop of Python, others are the interpreter's.
bool IsKernelWait(absl::string_view name) {
  return absl::StrContains(name, "::") ||
         std::any_of(std::begin(kKernelWaits), std::end(kKernelWaits),
                     [&](absl::string_view wait) { return absl::StrContains(name, wait); });
}

const ServerLoop* FindLoop(const std::string& functions, absl::string_view* found) {
  const Names names = absl::StrSplit(functions, ' ', absl::SkipEmpty());  // innermost first
  bool is_in_kernel = true;
  for (const absl::string_view name : names) {
    const ServerLoop* loop = LoopNamed(name);
    if (loop != nullptr) {
      *found = name;
      return loop->module.empty() && !is_in_kernel ? nullptr : loop;
    }
    if (!OnlyWaits(name)) return nullptr;
    is_in_kernel = is_in_kernel && IsKernelWait(name);
  }
  return nullptr;
}

bool HandlesARequest(const ServerLoop& loop, const StackPlace& place) {
  return loop.has_own_handlers ||
         std::any_of(std::begin(kHandlers), std::end(kHandlers), [&](absl::string_view handler) {
           return absl::StrContains(place.functions, handler);
         });
}

bool IsIdle(const Process& process, const StackPlace& place) {
  absl::string_view name;
  const ServerLoop* loop = FindLoop(place.functions, &name);
  if (loop == nullptr) return false;
  return std::none_of(
      process.thread_places.begin(), process.thread_places.end(), [&](const ThreadPlace& thread) {
        return thread.place.functions != place.functions && HandlesARequest(*loop, thread.place);
      });
}

constexpr size_t kLeastRequests = 4;  // calls on a communicator that brings requests

// Waits for work that another process brings: multiprocessing's connections, ZeroMQ. What the
// program's own threads put into a queue may be an answer as well as a request.
constexpr absl::string_view kInputs[] = {
    "Connection.recv",      "_ConnectionBase.recv", "_ConnectionBase.recv_bytes",
    "_ConnectionBase.poll", "Socket.recv",          "Socket.recv_multipart",
    "Socket.recv_pyobj",    "Socket.recv_string",   "Socket.poll",
    "Poller.poll",
};

bool WaitsForInput(const StackPlace& place) {
  return std::find(std::begin(kInputs), std::end(kInputs), place.inside) != std::end(kInputs);
}

// How a loop waits for what comes next: the last words of names. A lock, a file or a child is none.
constexpr absl::string_view kLoopWaits[] = {
    "get",   "Event.wait", "Condition.wait", "select", "poll",
    "sleep", "epoll_wait", "zmq_msg_recv",   "recv",   "accept",
};

bool MayWaitForInput(const Process& process, const StackPlace& place) {
  if (WaitsForInput(place)) return true;
  return process.state != 'D' &&
         std::any_of(std::begin(kLoopWaits), std::end(kLoopWaits), [&](absl::string_view wait) {
           absl::string_view name = place.inside;
           return absl::ConsumeSuffix(&name, wait) && (name.empty() || name.back() == '.');
         });
}

// A call by which rank `from` hands work to others.
bool HandsOut(const CallArgs& call, int32_t from) {
  if (OpKind(call.op) == CallKind::kP2p) return IsSendSide(call.op);
  return (call.op == Op::kBroadcast || call.op == Op::kScatter) && call.peer == from;
}

int32_t RankOf(const JobState& job, const Communicator& comm, const Process& process) {
  for (const auto& [rank, member] : comm.members) {
    if (FindProcess(job, member.process) == &process) return rank;
  }
  return -1;
}

// Whether the rank brings the others work by this communicator, and nothing else goes over it: by
// all records, the rank has only handed out. Schedulers of inference engines have such a group of
// gloo beside the one on which the ranks work. One that has not handed out much yet, or hands out
// by messages, as the first stage of a pipeline does, must wait for another process.
bool BringsRequests(const JobState& job, const Communicator& comm, const Verdict& verdict,
                    const Process& culprit, const StackPlace& place) {
  if (comm.kind != CommKind::kGloo || verdict.culprits.size() != 1) return false;
  if (culprit.motion == Motion::kSpinning || culprit.motion == Motion::kMoving) return false;
  const int32_t rank = RankOf(job, comm, culprit);
  const Member* member = FindMember(comm, rank);
  if (member == nullptr) return false;
  const bool is_message = OpKind(verdict.call.op) == CallKind::kP2p;
  if (is_message ? IsSendSide(verdict.call.op) : !HandsOut(verdict.call, rank)) return false;
  const auto hands_out = [&](const CallRecord& record) { return HandsOut(record.args, rank); };
  if (!std::all_of(member->records.begin(), member->records.end(), hands_out)) return false;
  const bool is_known = !is_message && member->entered >= kLeastRequests;
  return is_known ? MayWaitForInput(culprit, place) : WaitsForInput(place);
}

}  // namespace

std::string FindIdleLoop(const std::string& functions) {
  absl::string_view name;
  return FindLoop(functions, &name) == nullptr ? "" : std::string(name);
}

void WeighIdleServers(const JobState& job, Verdict* verdict) {
  // The others agree with the server in all calls before this one: else that is the verdict.
  if (verdict->cause != Cause::kMissingRank && verdict->cause != Cause::kUnmatchedP2p) return;
  const auto comm = job.communicators.find(verdict->communicator);
  const bool is_key = verdict->communicator_kind == CommKind::kStore;
  if (verdict->culprits.empty() || (comm == job.communicators.end() && !is_key)) return;
  for (size_t i = 0; i < verdict->culprits.size(); ++i) {
    const Culprit& culprit = verdict->culprits[i];
    const Process* process = FindProcess(job, culprit.process);
    if (process == nullptr || !culprit.ending.empty() || i >= verdict->places.size()) return;
    const StackPlace& place = verdict->places[i];
    if (IsIdle(*process, place)) continue;
    if (is_key || !BringsRequests(job, comm->second, *verdict, *process, place)) return;
  }
  verdict->is_idle = true;
  verdict->certainty = Certainty::kPossible;
  verdict->missing_evidence.push_back(
      "whether a request should be at work: the culprit waits for one");
}

}  // namespace rollcall
