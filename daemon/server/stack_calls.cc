#include "daemon/server/stack_calls.h"

namespace rollcall {
namespace {

v1::ProcessStack WithoutAnswer(const StackCalls::Process& process, int32_t rank,
                               const std::string& why) {
  v1::ProcessStack stack;
  stack.set_host(process.first);
  stack.set_pid(process.second);
  stack.set_rank(rank);
  stack.set_error(why);
  return stack;
}

}  // namespace

void StackCalls::Begin(uint64_t request, std::map<Process, int32_t> ranks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!closed_) calls_[request].open = std::move(ranks);
}

bool StackCalls::Deliver(uint64_t request, const v1::ProcessStack& stack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto call = calls_.find(request);
  if (call == calls_.end()) return false;
  const auto open = call->second.open.find({stack.host(), stack.pid()});
  if (open == call->second.open.end()) return true;
  call->second.came.push_back(stack);
  call->second.came.back().set_rank(open->second);
  call->second.open.erase(open);
  came_.notify_all();
  return true;
}

void StackCalls::GiveUp(uint64_t request, const std::vector<Process>& processes,
                        const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto call = calls_.find(request);
  if (call == calls_.end()) return;
  auto& open = call->second.open;
  for (const Process& process : processes) {
    const auto at = open.find(process);
    if (at == open.end()) continue;
    call->second.came.push_back(WithoutAnswer(at->first, at->second, why));
    open.erase(at);
  }
  came_.notify_all();
}

std::optional<v1::ProcessStack> StackCalls::Next(uint64_t request, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto call = calls_.find(request);
  if (call == calls_.end()) return std::nullopt;
  const auto has_more = [&call] { return !call->second.came.empty() || call->second.open.empty(); };
  came_.wait_until(lock, deadline, has_more);
  if (!call->second.came.empty()) {
    v1::ProcessStack stack = std::move(call->second.came.front());
    call->second.came.pop_front();
    return stack;
  }
  if (call->second.open.empty()) {
    calls_.erase(call);
    return std::nullopt;
  }
  const auto open = call->second.open.begin();
  v1::ProcessStack stack =
      WithoutAnswer(open->first, open->second, "its host's agent did not answer in time");
  call->second.open.erase(open);
  return stack;
}

void StackCalls::End(uint64_t request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  calls_.erase(request);
}

void StackCalls::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  for (auto& [request, call] : calls_) call.open.clear();
  came_.notify_all();
}

}  // namespace rollcall
