// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/wait_channels.h"

#include "absl/strings/match.h"

namespace rollcall {
namespace {

struct WaitChannel {
  const char* begins;  // a prefix: compilers add suffixes such as ".constprop.0"
  bool ends_when_stopped;
  bool ends_when_signalled;
};

constexpr WaitChannel kWaitChannels[] = {
    {"ep_poll", true, true},
    {"do_epoll_wait", true, true},
    {"do_sigtimedwait", true, true},
    {"do_semtimedop", true, true},
    {"__do_semtimedop", true, true},
    {"io_cqring_wait", true, true},
    {"read_events", true, true},  // io_getevents
    {"wait_woken", true, false},  // TCP
    {"inet_csk_accept", true, false},
    {"inet_wait_for_connect", true, false},
    {"sk_stream_wait", true, false},
    {"sk_wait_data", true, false},
    {"__skb_wait_for_more", true, false},
    {"unix_stream_data_wait", true, false},
    {"unix_stream_read_generic", true, false},
    {"unix_wait_for_peer", true, false},
    {"do_poll", false, true},
    {"do_sys_poll", false, true},
    {"poll_schedule_timeout", false, true},
    {"do_select", false, true},
    {"core_sys_select", false, true},
    {"hrtimer_nanosleep", false, true},
    {"do_nanosleep", false, true},
    {"common_nsleep", false, true},
    {"sigsuspend", false, true},
    {"pause", false, true},
    {"sys_pause", false, true},
    {"__do_sys_pause", false, true},
    {"__x64_sys_pause", false, true},
    {"__arm64_sys_pause", false, true},
    {"do_msgrcv", false, true},
    {"do_msgsnd", false, true},
};

const WaitChannel* Find(const std::string& wait_channel) {
  for (const WaitChannel& known : kWaitChannels) {
    if (absl::StartsWith(wait_channel, known.begins)) return &known;
  }
  return nullptr;
}

constexpr const char* kEntries[] = {"do_syscall_64", "entry_SYSCALL",  "x64_sys_call",
                                    "el0_svc",       "invoke_syscall", "ret_from_fork"};

}  // namespace

bool IsUnknownWait(const std::string& wait_channel) {
  if (wait_channel.empty() || wait_channel == "0") return true;
  for (const char* entry : kEntries) {
    if (absl::StartsWith(wait_channel, entry)) return true;
  }
  return false;
}

bool EndsWhenStopped(const std::string& wait_channel) {
  const WaitChannel* known = Find(wait_channel);
  return known != nullptr && known->ends_when_stopped;
}

bool EndsWhenSignalled(const std::string& wait_channel) {
  const WaitChannel* known = Find(wait_channel);
  return known != nullptr && known->ends_when_signalled;
}

}  // namespace rollcall
