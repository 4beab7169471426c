// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/stack_requests.h"

#include <algorithm>
#include <utility>

namespace rollcall {
namespace {

v1::ProcessStack FailedStack(const RequestedProcess& process, const std::string& why) {
  v1::ProcessStack stack;
  stack.set_host(process.host);
  stack.set_pid(process.pid);
  stack.set_rank(process.rank);
  stack.set_error(why);
  return stack;
}

}  // namespace

StackRequests::Opened StackRequests::Open(const StackRequest& request) {
  const MutexLock lock(mutex_);
  const uint64_t number = Add(request, false);
  const bool is_full = ++unread_ > kKept;
  if (is_full) DropOldest();
  return {number, is_full};
}

uint64_t StackRequests::OpenForReader(const StackRequest& request) {
  const MutexLock lock(mutex_);
  return is_closed_ ? ++last_number_ : Add(request, true);
}

uint64_t StackRequests::Add(const StackRequest& request, bool has_reader) {
  Entry& entry = entries_[++last_number_];
  entry.purpose = request;
  entry.has_reader = has_reader;
  for (const RequestedProcess& process : request.processes) {
    entry.open[{process.host, process.pid, process.agent}] = process;
  }
  return last_number_;
}

void StackRequests::DropOldest() {
  const auto oldest = std::find_if(entries_.begin(), entries_.end(),
                                   [](const auto& entry) { return !entry.second.has_reader; });
  entries_.erase(oldest);
  --unread_;
}

std::optional<StackResult> StackRequests::AddReply(uint64_t number, const AgentName& agent,
                                                   v1::ProcessStack stack) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return std::nullopt;
  const auto open = at->second.open.find({agent.host, stack.pid(), agent.id});
  if (open == at->second.open.end()) return std::nullopt;
  stack.set_host(agent.host);
  std::optional<StackResult> result = Finish(open->second, std::move(stack), true, &at->second);
  at->second.open.erase(open);
  RemoveIfDone(at);
  return result;
}

std::vector<StackResult> StackRequests::Fail(uint64_t number, const std::set<std::string>& agents,
                                             const std::string& why) {
  std::vector<StackResult> results;
  const MutexLock lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return results;
  auto& open = at->second.open;
  for (auto process = open.begin(); process != open.end();) {
    if (agents.count(process->second.agent) == 0) {
      ++process;
      continue;
    }
    auto result = Finish(process->second, FailedStack(process->second, why), false, &at->second);
    if (result.has_value()) results.push_back(std::move(*result));
    process = open.erase(process);
  }
  RemoveIfDone(at);
  return results;
}

// Gives the stack to the reader, or returns the result if there is no reader.
std::optional<StackResult> StackRequests::Finish(const RequestedProcess& process,
                                                 v1::ProcessStack stack, bool is_reply,
                                                 Entry* entry) {
  stack.set_rank(process.rank);
  stack.set_culprit(process.is_culprit);
  if (entry->has_reader) {
    entry->ready.push_back(std::move(stack));
    wake_.NotifyAll();
    return std::nullopt;
  }
  return StackResult{entry->purpose, process.index, std::move(stack), is_reply};
}

// A reader removes its own request, in Next() or Drop().
void StackRequests::RemoveIfDone(Entries::iterator at) {
  if (at->second.has_reader || !at->second.open.empty()) return;
  entries_.erase(at);
  --unread_;
}

std::optional<v1::ProcessStack> StackRequests::Next(uint64_t number, Deadline deadline) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return std::nullopt;
  Entry& entry = at->second;
  while (entry.ready.empty() && !entry.open.empty() && wake_.WaitUntil(mutex_, deadline)) {
  }
  if (!entry.ready.empty()) {
    v1::ProcessStack stack = std::move(entry.ready.front());
    entry.ready.pop_front();
    return stack;
  }
  if (entry.open.empty()) {
    entries_.erase(at);
    return std::nullopt;
  }
  const auto late = entry.open.begin();
  v1::ProcessStack stack = FailedStack(late->second, "the agent of its host did not reply in time");
  entry.open.erase(late);
  return stack;
}

void StackRequests::Drop(uint64_t number) {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return;
  if (!at->second.has_reader) --unread_;
  entries_.erase(at);
}

void StackRequests::Close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  for (auto& [number, entry] : entries_) {
    if (entry.has_reader) entry.open.clear();
  }
  wake_.NotifyAll();
}

}  // namespace rollcall
