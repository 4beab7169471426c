// SPDX-License-Identifier: Apache-2.0
// Decides who may make which call of the daemon's gRPC services. kCallAccess is the one table, from
// questions.def.
//
// Another daemon on the same database asks for its own callers: it shows this daemon's secret,
// which only the database has besides, and names who asks, with which role and for which tenants.
// It may make the calls of the service Query with these rights, and nothing else.
//
// Thread-safe. Does not block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/access/audit.h"
#include "daemon/access/refusals.h"
#include "daemon/model/tenants.h"
#include "security/authenticator.h"
#include "security/failed_logins.h"
#include "security/identity.h"

namespace grpc {
class ServerContextBase;
}

namespace rollcall {

// Who may ask a question: viewers, or also agents, about one job that an agent of their hosts
// reports. `rollcall run --daemon` has one credential for its agent and for its questions.
enum class MayAsk : uint8_t { kViewers, kViewersAndAgents };

struct CallAccess {
  std::string_view method;  // as gRPC writes it
  Role role;
  bool is_for_agents = false;
  // What it does, for the audit of refusals; empty means it changes nothing.
  std::string_view action = "";
};

inline constexpr char kConnect[] = "/rollcall.v1.AgentLink/Connect";
#define QUESTION(name, ...) inline constexpr char k##name[] = "/rollcall.v1.Query/" #name;
#define ACT(name, ...) inline constexpr char k##name[] = "/rollcall.v1.Query/" #name;
#define ACT_IN_PARTS(name, ...) inline constexpr char k##name[] = "/rollcall.v1.Query/" #name;
#include "daemon/access/questions.def"

inline constexpr CallAccess kCallAccess[] = {
    {kConnect, Role::kAgent},
#define QUESTION(name, Request, Response, who, ...) \
  {k##name, Role::kViewer, MayAsk::who == MayAsk::kViewersAndAgents},
#define ACT(name, Request, Response, words, ...) {k##name, Role::kOperator, false, words},
#define ACT_IN_PARTS(name, words, ...) {k##name, Role::kOperator, false, words},
#include "daemon/access/questions.def"
};

// What a caller may see.
Tenants TenantsFor(const Identity& identity);

// The metadata of a call in which another daemon names its caller: a v1::PeerCaller.
inline constexpr char kPeerCallerKey[] = "rollcall-peer-bin";

// The name of the daemon that asks for this caller; empty means the caller asks itself.
std::string PeerOf(const Identity& identity);

class Access {
 public:
  // All must outlive this object. `authenticator`: nullptr means every caller is the owner.
  // `failed_logins`: counts wrong tokens, also those of the page.
  Access(const Authenticator* authenticator, Refusals* refusals, FailedLogins* failed_logins)
      : authenticator_(authenticator), refusals_(refusals), failed_logins_(failed_logins) {}

  // `local` gives the address of this host at which the connection of a peer arrived (Presented).
  // Call it before the first call.
  void SetLocal(std::function<std::string(const std::string& peer)> local) {
    local_ = std::move(local);
  }
  // `known` receives the peer of each call whose caller is known, whatever the role. Likewise.
  void SetKnown(std::function<void(const std::string& peer)> known) { known_ = std::move(known); }

  // What other daemons show; never "". Likewise.
  void SetPeerSecret(std::string secret) { peer_secret_ = std::move(secret); }

  // `refused` receives each action that a known caller lacks the role for. Likewise.
  void SetRefused(AuditSink refused) { refused_ = std::move(refused); }

  // kUnauthenticated: an unknown caller; kResourceExhausted: the same, after too many wrong
  // tokens of that host; kPermissionDenied: has another role; kUnimplemented: is known, and
  // `method` is not in the table. The message names what to type next. A right token always passes:
  // a stranger behind the same address cannot lock others out.
  absl::StatusOr<Identity> Admit(std::string_view method,
                                 const grpc::ServerContextBase& context) const;
  // Counts that a known caller lacks the role, and makes the error. `call`: what it asked, in
  // words.
  absl::Status RefuseRole(const Identity& caller, const std::string& call, Role needed,
                          const std::string& peer) const;
  // For a stream that stays open: whether its caller would still be admitted at this Unix time.
  bool IsStillValid(const Identity& identity, int64_t now_s) const;
  // kPermissionDenied if the agent claims a host of another.
  absl::Status CheckHost(const Identity& identity, const std::string& host) const;

 private:
  absl::StatusOr<Identity> Identify(const Presented& presented) const;
  absl::StatusOr<Identity> IdentifyPeer(std::string_view method, const Presented& presented,
                                        const std::string& caller) const;
  absl::Status CountWrongToken(const Presented& presented, const absl::Status& status) const;

  const Authenticator* const authenticator_;
  Refusals* const refusals_;
  FailedLogins* const failed_logins_;
  std::function<std::string(const std::string& peer)> local_;
  std::function<void(const std::string& peer)> known_;
  AuditSink refused_;
  std::string peer_secret_;  // empty if there are no other daemons
};

}  // namespace rollcall
