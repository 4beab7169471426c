// SPDX-License-Identifier: Apache-2.0
// Settings of a process that may lack its container's environment (kPodEnvironmentFile).
#pragma once

namespace rollcall {

// The variable of the environment, else of the pod's file; nullptr if neither has it. In a setuid
// program the pod's file alone counts. Only while the first communicator is made, under its lock:
// not thread-safe. The result stays valid.
const char* GetSetting(const char* name);

}  // namespace rollcall
