// SPDX-License-Identifier: Apache-2.0
// Takes stacks by the signal that the process's own library answers. Needs no privilege except to
// run as the same user.
//
// Leaves some threads alone: those that block the signal, and those in a system call that a signal
// would end although the handler restarts calls (poll, epoll, select, sleep and similar). Such
// threads have only Python frames, read from memory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "agent/python/python_symbols.h"
#include "agent/stacks/stack_taker.h"

namespace rollcall {

class SignalStackTaker : public StackTaker {
 public:
  // `symbols`: nullptr means those in the files of the process.
  explicit SignalStackTaker(std::string proc_root = "/proc",
                            std::shared_ptr<PythonSymbols> symbols = nullptr)
      : proc_root_(std::move(proc_root)), symbols_(std::move(symbols)) {
    if (symbols_ == nullptr) symbols_ = std::make_shared<SymbolsInFiles>(proc_root_);
  }

  RawSample Take(pid_t pid, const TakeLimits& limits) override;

 private:
  std::string proc_root_;
  std::shared_ptr<PythonSymbols> symbols_;
};

}  // namespace rollcall
