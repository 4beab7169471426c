// SPDX-License-Identifier: Apache-2.0
// Asks the other daemons on the same database, over gRPC, for a caller of this one. They answer
// from what they have themselves.
//
// A call shows the secret of the daemon that it asks, and for whom it asks. With TLS the other
// daemon's certificate must hold the host of its address, and be signed by an authority of
// --tls-client-ca; without that flag, by one that this system trusts. Without TLS a daemon on this
// host must be of the same user, or root's.
//
// Thread-safe. Owns the connections, and has no thread of its own. May outlive the fleet, if no
// thread calls Others() then: a thread may still wait for a daemon that does not answer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/result_in_time.h"
#include "daemon/fleet/fleet_view.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class TlsFiles;

struct PeerOptions {
  std::shared_ptr<const TlsFiles> tls;  // this daemon's own; nullptr without TLS
  // For the answers that many wait for, such as the list of all jobs, and for those about one job.
  int64_t list_patience_ns = 1'000'000'000;
  int64_t patience_ns = 2'000'000'000;
  int64_t stacks_patience_ns = 20'000'000'000;
  // A daemon that has not answered in time is not asked for its part of a list for this long.
  int64_t pause_ns = 2'000'000'000;
};

// One query to one daemon.
struct PeerAsk {
  DaemonRow peer;
  v1::PeerCaller caller;
  SteadyTime until;
  // It changes something, so it must not be sent a second time.
  bool is_action = false;
};

// All errors of these functions but kUnavailable are the other daemon's answers. kUnavailable: it
// does not answer, or takes this daemon for a stranger; the error names it.
class Peers {
 public:
  Peers(const FleetView* fleet, PeerOptions options);
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Ends all calls, now and later: the daemon stops.
  void Close();

  const PeerOptions& options() const;
  // Returns the living daemons without this one.
  std::vector<DaemonRow> Others() const;
  // Whether it has not answered its last query.
  bool IsSilent(const DaemonRow& peer) const;
  // Whether it has not answered in time a moment ago.
  bool IsPaused(const DaemonRow& peer) const;
  // The error for a daemon that is not asked, or has not answered by PeerAsk::until.
  absl::Status Silence(const DaemonRow& peer) const;

#define QUESTION(name, Request, Response, ...) \
  absl::StatusOr<v1::Response> Ask(const PeerAsk& ask, const v1::Request& request);
#define ACT(name, Request, Response, ...) QUESTION(name, Request, Response, )
#include "daemon/access/questions.def"

  // See QuerySource::StreamStacks().
  absl::Status TakeStacks(const PeerAsk& ask, const v1::TakeStacksRequest& request,
                          const std::function<bool(const v1::ProcessStack&)>& on_stack);
  // Asks as QuerySource::LookAtJob() does: `goes_on` is asked several times a second. kCancelled:
  // it refused.
  absl::StatusOr<std::vector<v1::HostLook>> LookAtJob(const PeerAsk& ask,
                                                      const v1::LookRequest& request,
                                                      const std::function<bool()>& goes_on);

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
