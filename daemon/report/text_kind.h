// SPDX-License-Identifier: Apache-2.0
// What a text field of an incident contains, as anonymous reports distinguish it.
#pragma once

namespace rollcall {

enum class TextKind {
  kPublic,    // words of Rollcall, NCCL and the kernel: stays
  kFunction,  // the name of a function: stays
  kHost,
  kIncident,
  kJob,
  kTenant,
  kCommunicator,
  kPod,
  kContainer,
  kGpu,
  kPhase,
  kThread,   // the name of a thread; those of well-known libraries stay
  kFile,     // a path
  kSite,     // "/x/train.py:57 in train_epoch"
  kAddress,  // "/x/libfoo.so+0x12"
  kError,    // "ValueError: no such file at train.py:57"
  kDevice,   // "mlx5_2 port 1", "/mnt/data", "nvme0n1", a file server
  kLog,      // a line of the kernel's log, or what a host calls a part of it
  kText,     // sentences, which may contain all of these
  kDropped,  // becomes ""
};

}  // namespace rollcall
