// SPDX-License-Identifier: Apache-2.0
// Answers SIGQUIT of this host's training processes: takes a sample of the process and writes its
// stacks to the stderr that the process has passed on, as a JVM does.
//
// One thread, and for each answer one spare thread. A stderr without a reader costs a few seconds,
// never more.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "agent/processes/descriptor_socket.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/stack_namer.h"

namespace rollcall {

class QuitAnswers {
 public:
  QuitAnswers(std::string directory, std::string proc_root, std::shared_ptr<StackNamer> namer)
      : directory_(std::move(directory)),
        proc_root_(std::move(proc_root)),
        namer_(std::move(namer)) {}
  ~QuitAnswers() { Stop(); }
  QuitAnswers(const QuitAnswers&) = delete;
  QuitAnswers& operator=(const QuitAnswers&) = delete;

  // Errors: as DescriptorSocket::Listen. Without it, processes write how to get their stacks.
  absl::Status Start();
  void Stop();

 private:
  struct Tools;

  void Run();

  const std::string directory_;  // of the segments
  const std::string proc_root_;
  const std::shared_ptr<StackNamer> namer_;
  std::unique_ptr<DescriptorSocket> socket_;
  std::atomic<bool> stopping_{false};
  SpareThreads threads_;
  std::thread thread_;
};

}  // namespace rollcall
