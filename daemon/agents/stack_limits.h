// SPDX-License-Identifier: Apache-2.0
// What the daemon keeps of the lists in a stack sample, whatever an agent sends: as many as an
// agent of Rollcall sends at most. Incidents keep two samples of a process. Pure.
#pragma once

namespace rollcall {

namespace v1 {
class ProcessStack;
}

namespace limits {

inline constexpr int kChildren = 64;        // of a process
inline constexpr int kSampledChildren = 8;  // of these, with threads
inline constexpr int kOthers = 2;           // processes at other ends
inline constexpr int kThreadsOfChild = 4;
inline constexpr int kFramesOfChild = 32;
inline constexpr int kPidsOfOtherEnd = 8;
inline constexpr int kSocketsOfOtherEnd = 16;
inline constexpr int kFileLocks = 8;
inline constexpr int kNetworks = 64;         // communicators and ranks with transfers
inline constexpr int kNetworkStates = 1024;  // of each
inline constexpr int kNetworkStatesOfStack = 4096;

}  // namespace limits

// Whether there was more.
bool LimitStack(v1::ProcessStack* stack);

}  // namespace rollcall
