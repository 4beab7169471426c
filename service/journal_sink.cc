// SPDX-License-Identifier: Apache-2.0
#include "service/journal_sink.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log/log_fields.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr char kJournalSocket[] = "/run/systemd/journal/socket";

// The level as a priority of syslog(3).
int Priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return 2;
    case spdlog::level::err:
      return 3;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::info:
      return 6;
    default:
      return 7;
  }
}

// NAME=VALUE, or the form with a length, which a value with more than one line needs.
void AddField(const std::string& name, const std::string& value, std::string* entry) {
  if (value.find('\n') == std::string::npos) {
    absl::StrAppend(entry, name, "=", value, "\n");
    return;
  }
  absl::StrAppend(entry, name, "\n");
  for (int shift = 0; shift < 64; shift += 8) {
    entry->push_back(static_cast<char>((uint64_t{value.size()} >> shift) & 0xff));
  }
  absl::StrAppend(entry, value, "\n");
}

class JournalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  JournalSink(const std::string& socket, spdlog::sink_ptr otherwise)
      : otherwise_(std::move(otherwise)), fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    const size_t size = std::min(socket.size(), sizeof(address_.sun_path) - 1);
    memcpy(address_.sun_path, socket.data(), size);
  }

 protected:
  // Waits for no journal: a full queue must not stop the thread that logs.
  void sink_it_(const spdlog::details::log_msg& line) override {
    const std::string entry = JournalEntry(line);
    const ssize_t sent = sendto(fd_.get(), entry.data(), entry.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&address_), sizeof(address_));
    if (sent < 0) otherwise_->log(line);
  }
  void flush_() override { otherwise_->flush(); }

 private:
  const spdlog::sink_ptr otherwise_;
  const UniqueFd fd_;
  sockaddr_un address_ = {};
};

}  // namespace

std::string JournalEntry(const spdlog::details::log_msg& line) {
  std::string entry;
  AddField("MESSAGE", std::string(line.payload.data(), line.payload.size()), &entry);
  AddField("PRIORITY", absl::StrCat(Priority(line.level)), &entry);
  AddField("SYSLOG_IDENTIFIER", std::string(line.logger_name.data(), line.logger_name.size()),
           &entry);
  for (const auto& [name, value] : LogFields::OfThisThread()) AddField(name, value, &entry);
  return entry;
}

spdlog::sink_ptr MakeJournalSink(const std::string& socket, spdlog::sink_ptr otherwise) {
  return std::make_shared<JournalSink>(socket, std::move(otherwise));
}

bool IsStderrJournal() {
  const char* stream = getenv("JOURNAL_STREAM");
  struct stat facts = {};
  if (stream == nullptr || fstat(STDERR_FILENO, &facts) != 0) return false;
  return absl::StrCat(facts.st_dev, ":", facts.st_ino) == stream;
}

spdlog::sink_ptr MakeServiceSink() {
  auto to_stderr = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  if (!IsStderrJournal()) return to_stderr;
  return MakeJournalSink(kJournalSocket, std::move(to_stderr));
}

}  // namespace rollcall
