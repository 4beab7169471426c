// SPDX-License-Identifier: Apache-2.0
#include "cli/run/stderr_queue.h"

#include <errno.h>
#include <poll.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/log/limited_log.h"
#include "cli/commands.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

// May block for ever. Gives up if stderr is closed.
void WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room = {STDERR_FILENO, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

class QueueSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit QueueSink(std::shared_ptr<StderrQueue> queue) : queue_(std::move(queue)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    queue_->Write(std::string(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  const std::shared_ptr<StderrQueue> queue_;
};

}  // namespace

StderrQueue::StderrQueue() { worker_.Start(); }

StderrQueue::~StderrQueue() {
  constexpr std::chrono::seconds kLastWrite{1};
  worker_.Finish(std::chrono::steady_clock::now() + kLastWrite, Worker::Waiting::kDrop);
}

void StderrQueue::Write(const std::string& text) {
  if (*waiting_ >= kMostBytes) return;
  *waiting_ += text.size();
  worker_.Post([waiting = waiting_, text] {
    *waiting -= text.size();
    WriteAll(text);
  });
}

bool StderrQueue::Flush(SteadyTime deadline) { return worker_.AwaitIdle(deadline); }

void LogTo(std::shared_ptr<StderrQueue> queue) {
  LogWithLimits("rollcall", std::make_shared<QueueSink>(std::move(queue)));
  spdlog::set_pattern(kLogPattern);
}

}  // namespace rollcall
