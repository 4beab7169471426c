// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/stack_requests.h"

#include <algorithm>
#include <utility>

namespace rollcall {
namespace {

v1::ProcessStack WithoutStack(const AskedProcess& process, const std::string& why) {
  v1::ProcessStack stack;
  stack.set_host(process.host);
  stack.set_pid(process.pid);
  stack.set_rank(process.rank);
  stack.set_error(why);
  return stack;
}

}  // namespace

uint64_t StackRequests::Open(const StackRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = Add(request, false);
  if (++unread_ > kKept) DropOldest();
  return number;
}

uint64_t StackRequests::OpenForReader(const StackRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_closed_ ? ++last_number_ : Add(request, true);
}

uint64_t StackRequests::Add(const StackRequest& request, bool has_reader) {
  Entry& entry = entries_[++last_number_];
  entry.job = request.job;
  entry.incident = request.incident;
  entry.is_rest = request.is_rest;
  entry.has_reader = has_reader;
  for (const AskedProcess& process : request.processes) {
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

std::optional<StackAnswer> StackRequests::Answer(uint64_t number, const AgentName& agent,
                                                 v1::ProcessStack stack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return std::nullopt;
  const auto open = at->second.open.find({agent.host, stack.pid(), agent.id});
  if (open == at->second.open.end()) return std::nullopt;
  stack.set_host(agent.host);
  std::optional<StackAnswer> answer = Settle(open->second, std::move(stack), true, &at->second);
  at->second.open.erase(open);
  ForgetIfDone(at);
  return answer;
}

std::vector<StackAnswer> StackRequests::GiveUp(uint64_t number, const std::set<std::string>& agents,
                                               const std::string& why) {
  std::vector<StackAnswer> answers;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return answers;
  auto& open = at->second.open;
  for (auto process = open.begin(); process != open.end();) {
    if (agents.count(process->second.agent) == 0) {
      ++process;
      continue;
    }
    auto answer = Settle(process->second, WithoutStack(process->second, why), false, &at->second);
    if (answer.has_value()) answers.push_back(std::move(*answer));
    process = open.erase(process);
  }
  ForgetIfDone(at);
  return answers;
}

// Puts it where the reader finds it; returns it where there is none.
std::optional<StackAnswer> StackRequests::Settle(const AskedProcess& process,
                                                 v1::ProcessStack stack, bool has_come,
                                                 Entry* entry) {
  stack.set_rank(process.rank);
  stack.set_culprit(process.is_culprit);
  if (entry->has_reader) {
    entry->came.push_back(std::move(stack));
    came_.notify_all();
    return std::nullopt;
  }
  return StackAnswer{entry->job,    entry->incident,  entry->is_rest,
                     process.index, std::move(stack), has_come};
}

// A reader forgets his own.
void StackRequests::ForgetIfDone(Entries::iterator at) {
  if (at->second.has_reader || !at->second.open.empty()) return;
  entries_.erase(at);
  --unread_;
}

std::optional<v1::ProcessStack> StackRequests::Next(uint64_t number, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return std::nullopt;
  Entry& entry = at->second;
  came_.wait_until(lock, deadline, [&entry] { return !entry.came.empty() || entry.open.empty(); });
  if (!entry.came.empty()) {
    v1::ProcessStack stack = std::move(entry.came.front());
    entry.came.pop_front();
    return stack;
  }
  if (entry.open.empty()) {
    entries_.erase(at);
    return std::nullopt;
  }
  const auto late = entry.open.begin();
  v1::ProcessStack stack = WithoutStack(late->second, "its host's agent did not answer in time");
  entry.open.erase(late);
  return stack;
}

void StackRequests::Drop(uint64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = entries_.find(number);
  if (at == entries_.end()) return;
  if (!at->second.has_reader) --unread_;
  entries_.erase(at);
}

void StackRequests::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_closed_ = true;
  for (auto& [number, entry] : entries_) {
    if (entry.has_reader) entry.open.clear();
  }
  came_.notify_all();
}

}  // namespace rollcall
