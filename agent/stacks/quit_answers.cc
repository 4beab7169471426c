// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/quit_answers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/rank_environment.h"
#include "agent/stacks/any_stack_taker.h"
#include "agent/stacks/stack_namer.h"
#include "agent/stacks/stack_reader.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

constexpr int64_t kStopNs = 200'000'000;  // how long Stop() may take
constexpr int64_t kWriteNs = 5'000'000'000;
constexpr int64_t kAnswerNs = 60'000'000'000;  // reading symbols takes long
// poll() reports a pipe as writable if this much fits; a longer write could block.
constexpr size_t kPieceBytes = 512;

// The job shares the descriptor, so it must stay in blocking mode.
void WriteWithoutBlocking(int fd, const std::string& text) {
  const int64_t deadline = MonotonicNs() + kWriteNs;
  for (size_t done = 0; done < text.size();) {
    pollfd wanted = {fd, POLLOUT, 0};
    const int64_t left_ms = (deadline - MonotonicNs()) / 1'000'000;
    if (left_ms <= 0 || poll(&wanted, 1, static_cast<int>(left_ms)) <= 0) return;
    const ssize_t count = write(fd, text.data() + done, std::min(kPieceBytes, text.size() - done));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return;
    if (count > 0) done += static_cast<size_t>(count);
  }
}

}  // namespace

// What one thread at a time uses to answer. A thread that gets stuck keeps them.
struct QuitAnswers::Tools {
  Tools(std::string root, std::shared_ptr<StackNamer> with)
      : proc_root(std::move(root)),
        namer(std::move(with)),
        taker(proc_root, std::make_shared<SymbolsOfNamer>(namer)) {}

  void Answer(const PassedDescriptor& asked) {
    const ProcessStack stack = namer->Name(taker.Take(asked.pid, TakeLimits()), TakeLimits());
    const auto environ = ReadProcFile(ProcPath(proc_root, asked.pid, "environ"));
    const int rank = environ.ok() ? FindRankInEnviron(*environ).coordinates.rank : -1;
    WriteWithoutBlocking(asked.fd.get(),
                         absl::StrCat("rollcall: ", FormatProcessStack(stack, rank)));
  }

  const std::string proc_root;
  const std::shared_ptr<StackNamer> namer;
  AnyStackTaker taker;
};

absl::Status QuitAnswers::Start() {
  UniqueFd folder(open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    return absl::UnavailableError(absl::StrCat(directory_, ": ", strerror(errno)));
  }
  auto socket = DescriptorSocket::Listen(std::move(folder), segment::kAgentSocket);
  if (!socket.ok()) {
    return absl::Status(socket.status().code(),
                        absl::StrCat(directory_, ": ", socket.status().message()));
  }
  socket_ = *std::move(socket);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void QuitAnswers::Stop() {
  stopping_ = true;
  threads_.Cancel();
  if (thread_.joinable()) thread_.join();
  socket_.reset();
}

void QuitAnswers::Run() {
  // Writing to a stderr whose reader has ended raises SIGPIPE.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  auto tools = std::make_shared<Tools>(proc_root_, namer_);
  while (!stopping_) {
    std::optional<PassedDescriptor> passed = socket_->Receive(kStopNs);
    if (!passed.has_value() || passed->kind != segment::kStderrDescriptor) continue;
    const auto asked = std::make_shared<PassedDescriptor>(*std::move(passed));
    const std::string key = absl::StrCat(asked->pid);
    if (threads_.IsRunning(key)) continue;
    if (!threads_.Run(key, [tools, asked] { tools->Answer(*asked); }, kAnswerNs)) {
      tools =
          std::make_shared<Tools>(proc_root_, namer_);  // the stuck thread keeps the earlier ones
    }
  }
}

}  // namespace rollcall
