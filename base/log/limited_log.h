// SPDX-License-Identifier: Apache-2.0
// A sink that passes on some lines of each level at once, then some a second. Agents, jobs and
// clients can make the daemon and the agent write lines: they must not fill the disk, or hide the
// lines on others. Each level has a budget of its own, so a flood of warnings hides no error. Lines
// of LogAlways() need no budget.
//
// One line reports how many were left out: when the logger is flushed, or with the next line after
// kSayEveryNs. Thread-safe.
#pragma once

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/durations.h"
#include "base/steady_clock.h"
#include "base/throttle.h"

namespace rollcall {

class LimitedSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static constexpr int64_t kBurst = 100;  // lines
  static constexpr int64_t kPerSecond = 10;
  static constexpr int64_t kSayEveryNs = 10 * kSecond;

  // `name`: of the program, for the line on what was left out. `now`: a clock that never goes back.
  LimitedSink(std::string name, spdlog::sink_ptr to, std::function<int64_t()> now = SteadyNs)
      : name_(std::move(name)), to_(std::move(to)), now_(std::move(now)) {
    budgets_.fill(Throttle(kSecond / kPerSecond, kBurst));
  }

  // Writes a line that no budget counts.
  void LogAlways(const spdlog::details::log_msg& line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    to_->log(line);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    const int64_t now_ns = now_();
    if (left_out_ != 0 && now_ns - left_out_since_ns_ >= kSayEveryNs) SayLeftOut();
    if (budgets_.at(static_cast<size_t>(line.level)).Take(now_ns).has_value()) {
      to_->log(line);
    } else if (left_out_++ == 0) {
      left_out_since_ns_ = now_ns;
    }
  }

  void flush_() override {
    if (left_out_ != 0) SayLeftOut();
    to_->flush();
  }

  void set_pattern_(const std::string& pattern) override { to_->set_pattern(pattern); }
  void set_formatter_(std::unique_ptr<spdlog::formatter> formatter) override {
    to_->set_formatter(std::move(formatter));
  }

 private:
  void SayLeftOut() {
    const std::string text = "left out " + std::to_string(std::exchange(left_out_, 0)) +
                             " lines of this log: more than " + std::to_string(kPerSecond) +
                             " a second came";
    to_->log(spdlog::details::log_msg(name_, spdlog::level::warn, text));
  }

  const std::string name_;
  const spdlog::sink_ptr to_;
  const std::function<int64_t()> now_;
  std::array<Throttle, spdlog::level::n_levels> budgets_;
  uint64_t left_out_ = 0;  // lines not yet reported as left out
  int64_t left_out_since_ns_ = 0;
};

// Makes `to`, with limits, the sink of all spdlog::info(), warn(), ... The times are UTC, as those
// of incidents: of the host's own times, an hour of autumn comes twice.
inline void LogWithLimits(const std::string& name, spdlog::sink_ptr to) {
  auto log =
      std::make_shared<spdlog::logger>(name, std::make_shared<LimitedSink>(name, std::move(to)));
  log->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "[%Y-%m-%d %H:%M:%S.%e UTC] [%n] [%^%l%$] %v", spdlog::pattern_time_type::utc));
  spdlog::set_default_logger(std::move(log));
}

// Like spdlog::info("{}", text), but no budget leaves the line out. For what trusted callers do,
// such as the actions of operators: a flood of other lines must not hide them.
inline void LogAlways(const std::string& text) {
  const std::shared_ptr<spdlog::logger> log = spdlog::default_logger();
  if (!log->should_log(spdlog::level::info)) return;
  const spdlog::details::log_msg line(log->name(), spdlog::level::info, text);
  for (const spdlog::sink_ptr& sink : log->sinks()) {
    auto* limited = dynamic_cast<LimitedSink*>(sink.get());
    if (limited != nullptr) {
      limited->LogAlways(line);
    } else if (sink->should_log(line.level)) {
      sink->log(line);
    }
  }
}

}  // namespace rollcall
