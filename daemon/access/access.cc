// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/access.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/clean_text.h"
#include "base/digest/digest.h"
#include "base/names.h"
#include "base/steady_clock.h"
#include "rollcall/v1/query.pb.h"
#include "security/grpc/credentials.h"

namespace rollcall {
namespace {

// nullptr if there is no such call.
const CallAccess* FindAccess(std::string_view method) {
  const auto found = std::find_if(std::begin(kCallAccess), std::end(kCallAccess),
                                  [method](const CallAccess& row) { return row.method == method; });
  return found == std::end(kCallAccess) ? nullptr : &*found;
}

std::string RolesInWords(const Identity& identity) {
  return identity.roles.empty()
             ? std::string("no role")
             : absl::StrCat("the role ",
                            absl::StrJoin(identity.roles, ", ", [](std::string* out, Role role) {
                              absl::StrAppend(out, std::string(RoleName(role)));
                            }));
}

absl::string_view FirstLabel(absl::string_view name) { return name.substr(0, name.find('.')); }

// The name of this identity that the caller may have meant by `host`; empty if it is not clear.
std::string NameMeant(const Identity& identity, const std::string& host) {
  std::vector<std::string> names;
  for (const std::string& own : identity.hosts) {
    if (!IsPlainName(own)) continue;  // a pattern
    if (absl::EqualsIgnoreCase(FirstLabel(own), FirstLabel(host))) return own;
    names.push_back(own);
  }
  return names.size() == 1 ? names.front() : "";
}

// What to type where the agent's name for its host is not one of its identity's.
std::string AdviceForHost(const Identity& identity, const std::string& host) {
  const std::string meant = NameMeant(identity, host);
  std::string advice =
      absl::StrCat("\n  give the agent a name that it has:  rollcall-agent --host=",
                   meant.empty() ? "NAME" : meant);
  const bool is_same_host =
      !meant.empty() && absl::EqualsIgnoreCase(FirstLabel(meant), FirstLabel(host));
  // A person may paste the line into a shell.
  if (is_same_host && IsPlainName(host)) {
    absl::StrAppend(&advice,
                    "\n  or a certificate with both names:  rollcall pki issue DIR "
                    "--role=agent --host=",
                    meant, " --host=", host);
  }
  return advice;
}

// In Identity::credential, before the name of the daemon that asks.
constexpr char kPeerCredential[] = "daemon ";

// What another daemon sends about its caller; nullopt if the call is not of another daemon.
std::optional<std::string> PeerCallerIn(const grpc::ServerContextBase& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kPeerCallerKey);
  if (found == metadata.end()) return std::nullopt;
  // Ignores two of them: which one counts must not depend on the reader.
  if (metadata.count(kPeerCallerKey) != 1) return "";
  return std::string(found->second.data(), found->second.size());
}

}  // namespace

std::string PeerOf(const Identity& identity) {
  absl::string_view credential = identity.credential;
  return absl::ConsumePrefix(&credential, kPeerCredential) ? std::string(credential) : "";
}

Tenants TenantsFor(const Identity& identity) {
  return identity.MaySeeAllTenants() ? Tenants::All() : Tenants::Only(identity.tenants);
}

absl::Status Access::CountWrongToken(const Presented& presented, const absl::Status& status) const {
  if (failed_logins_->Begin(presented.peer, SteadyNs()) == 0) return status;
  return absl::ResourceExhaustedError(
      absl::StrCat(status.message(),
                   ". This host has sent too many wrong tokens within a minute: wait a minute"));
}

absl::StatusOr<Identity> Access::Identify(const Presented& presented) const {
  absl::StatusOr<Identity> caller = authenticator_->Identify(presented);
  const bool is_wrong_token = absl::IsUnauthenticated(caller.status()) && !presented.bearer.empty();
  if (!is_wrong_token) return caller;
  return CountWrongToken(presented, caller.status());
}

// `caller`: what the other daemon sends about its caller.
absl::StatusOr<Identity> Access::IdentifyPeer(std::string_view method, const Presented& presented,
                                              const std::string& caller) const {
  if (peer_secret_.empty() || !EqualInConstantTime(presented.bearer, peer_secret_)) {
    return CountWrongToken(
        presented,
        absl::UnauthenticatedError(
            "this is not the secret of this daemon: it may have started again just now"));
  }
  v1::PeerCaller peer;
  const std::optional<Role> role =
      peer.ParseFromString(caller) ? ParseRole(peer.role()) : std::nullopt;
  if (!role.has_value() || method == kConnect) {
    return absl::UnauthenticatedError(
        "another daemon may name the caller for whom it asks in the service Query only: run the "
        "same release everywhere");
  }
  return Identity{CleanText(peer.name()),
                  {*role},
                  {peer.hosts().begin(), peer.hosts().end()},
                  {peer.tenants().begin(), peer.tenants().end()},
                  0,
                  absl::StrCat(kPeerCredential, CleanText(peer.daemon()))};
}

absl::StatusOr<Identity> Access::Admit(std::string_view method,
                                       const grpc::ServerContextBase& context) const {
  const CallAccess* access = FindAccess(method);
  // What is not in the table is the caller's own text, which no log and no answer repeats.
  const std::string name(access == nullptr ? "an unknown call"
                                           : method.substr(method.rfind('/') + 1));
  Presented presented = PresentedBy(context);
  if (local_ && !presented.is_in_process) presented.local = local_(presented.peer);
  const bool is_owner = presented.is_in_process || authenticator_ == nullptr;
  const std::optional<std::string> peer = PeerCallerIn(context);
  absl::StatusOr<Identity> caller = peer.has_value() ? IdentifyPeer(method, presented, *peer)
                                    : is_owner       ? OwnerIdentity("this process")
                                                     : Identify(presented);
  if (!caller.ok()) {
    refusals_->Count(kRefusedCredential, absl::StrCat(name, " by ", presented.peer, ": ",
                                                      std::string(caller.status().message())));
    return caller;
  }
  if (known_ && !presented.is_in_process) known_(presented.peer);
  if (access == nullptr) {
    return absl::UnimplementedError(
        "this daemon does not have that call: run the same release everywhere");
  }
  const bool may =
      caller->Has(access->role) || (access->is_for_agents && caller->Has(Role::kAgent));
  if (may) return caller;
  if (refused_ && !access->action.empty()) {
    refused_({caller->name, std::string(access->action),
              absl::StrCat("needs the role ", std::string(RoleName(access->role))),
              presented.peer});
  }
  return RefuseRole(*caller, name, access->role, presented.peer);
}

absl::Status Access::RefuseRole(const Identity& caller, const std::string& call, Role needed,
                                const std::string& peer) const {
  const std::string role(RoleName(needed));
  const std::string text = absl::StrCat(CleanText(caller.name), " has ", RolesInWords(caller), "; ",
                                        call, " needs the role ", role);
  refusals_->Count(kRefusedRole, absl::StrCat(text, " (", peer, ")"));
  return absl::PermissionDeniedError(
      absl::StrCat(text, "\n  a token of that role:  rollcall token new --role=", role));
}

bool Access::IsStillValid(const Identity& identity, int64_t now_s) const {
  if (identity.expires_s != 0 && identity.expires_s <= now_s) return false;
  return authenticator_ == nullptr || authenticator_->IsStillValid(identity);
}

absl::Status Access::CheckHost(const Identity& identity, const std::string& host) const {
  if (identity.MaySpeakFor(host)) return absl::OkStatus();
  const std::string text = absl::StrCat(
      CleanText(identity.name), " may not report for the host \"", CleanText(host), "\"; ",
      identity.hosts.empty() ? "it names no host"
                             : absl::StrCat("its hosts: ", absl::StrJoin(identity.hosts, ", ")));
  refusals_->Count(kRefusedAgentHost, text);
  return absl::PermissionDeniedError(absl::StrCat(text, AdviceForHost(identity, host)));
}

}  // namespace rollcall
