// SPDX-License-Identifier: Apache-2.0
// A lease as its holder counts it. Pure.
//
// The database gives a lease for a length from when it gets the request; the holder counts from
// before it sent the request, and less the margin. So the holder's view ends first, as long as its
// clock loses less than margin / length against the database's: with 6 s and 1 s, less than a
// sixth. A holder that stands still (SIGSTOP, a paused virtual machine) finds its lease over when
// it goes on: its clock must count such times, as CLOCK_BOOTTIME does.
//
// tests/unit/daemon/fleet/ownership_model_test.cc tries all orders of events with this class.
#pragma once

#include <cstdint>

namespace rollcall {

// All times in ns, of one clock of the holder's.
class Lease {
 public:
  // `length_ns`: as the database gives it.
  Lease(int64_t length_ns, int64_t margin_ns) : counts_ns_(length_ns - margin_ns) {}

  // A renewal that was sent at this time has succeeded. An earlier one than the last changes
  // nothing.
  void Renewed(int64_t asked_ns) {
    if (is_held_ && asked_ns + counts_ns_ <= held_until_ns_) return;
    is_held_ = true;
    held_until_ns_ = asked_ns + counts_ns_;
  }
  // The holder gives it up, or has lost it.
  void Ended() { is_held_ = false; }

  bool IsHeld(int64_t now_ns) const { return is_held_ && now_ns < held_until_ns_; }
  // 0 if it is not held.
  int64_t HeldUntil() const { return is_held_ ? held_until_ns_ : 0; }

 private:
  int64_t counts_ns_;
  int64_t held_until_ns_ = 0;
  bool is_held_ = false;
};

}  // namespace rollcall
