// SPDX-License-Identifier: Apache-2.0
#include "agent/link/fleet_channels.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace rollcall {
namespace {

// The names that the certificates of resolved addresses must hold. Thread-safe.
class CertificateNames {
 public:
  std::vector<std::string> Remember(const std::vector<NamedDaemon>& daemons) {
    const MutexLock lock(mutex_);
    std::vector<std::string> addresses;
    for (const NamedDaemon& daemon : daemons) {
      if (!daemon.name.empty()) names_[daemon.address] = daemon.name;
      addresses.push_back(daemon.address);
    }
    return addresses;
  }
  std::string Of(const std::string& address) const {
    const MutexLock lock(mutex_);
    const auto at = names_.find(address);
    return at == names_.end() ? "" : at->second;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::string> names_ ABSL_GUARDED_BY(mutex_);
};

DaemonWay WayThrough(const std::shared_ptr<DaemonChannels>& channels, bool names_daemon) {
  DaemonWay way;
  way.connect = [channels](bool is_quick) {
    LogWarnings(channels.get());
    return channels->Connect(is_quick ? Keepalive::kQuick : Keepalive::kCalm);
  };
  way.explain = [channels, names_daemon](const grpc::Status& status) {
    const std::string why = channels->Explain(status);
    return names_daemon ? absl::StrCat(channels->address(), ": ", why) : why;
  };
  way.still_trusts = [channels](const grpc::ClientContext& stream) {
    LogWarnings(channels.get());
    return channels->StillTrusts(stream);
  };
  return way;
}

}  // namespace

FleetAgentOptions MakeFleetAgentOptions(AgentOptions agent,
                                        const std::shared_ptr<DaemonChannels>& channels,
                                        const HostResolver& resolve) {
  FleetAgentOptions options;
  options.agent = std::move(agent);
  const std::string list = channels->address();
  options.given = SplitDaemons(list);
  const auto names = std::make_shared<CertificateNames>();
  if (MayNameSeveral(list)) {
    options.find_given = [names, list, resolve] {
      return names->Remember(ResolveDaemons(list, resolve));
    };
  }
  options.way_to = [channels, names, list](const std::string& address) {
    if (address == list) return WayThrough(channels, /*names_daemon=*/false);
    return WayThrough(channels->For(address, names->Of(address)), /*names_daemon=*/true);
  };
  return options;
}

}  // namespace rollcall
