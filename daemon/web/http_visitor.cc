// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_visitor.h"

#include <spdlog/spdlog.h>
#include <time.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/digest/digest.h"
#include "base/monotonic_clock.h"
#include "base/peer_address.h"

namespace rollcall {
namespace {

constexpr char kOwnToken[] = "token of this page";
constexpr char kNeedsToken[] =
    "this daemon requires a token\n  in a browser:  the address /login\n"
    "  in a script:   -H 'Authorization: Bearer TOKEN'\n"
    "  the token is in the file of rollcalld --http-token-file; ask the daemon's operator";
constexpr char kWrongToken[] = "this token is unknown";
constexpr char kPasswordPrefix[] = "password ";

// The rest of a header field after its scheme ("Bearer x"); "" if it has another scheme.
std::string After(absl::string_view scheme, absl::string_view field) {
  return absl::StartsWithIgnoreCase(field, scheme) ? std::string(field.substr(scheme.size())) : "";
}

// Returns user and password in a header field of the scheme Basic.
std::pair<std::string, std::string> PairIn(absl::string_view field) {
  std::string pair;
  if (!absl::Base64Unescape(After("Basic ", field), &pair)) pair.clear();
  const size_t colon = pair.find(':');
  if (colon == std::string::npos) return {pair, ""};
  return {pair.substr(0, colon), pair.substr(colon + 1)};
}

// The CPU time that this thread has used.
int64_t CpuNs() { return ReadClockNs(CLOCK_THREAD_CPUTIME_ID); }

HttpDenial Busy(int busy_s) {
  return {429, "guessing",
          absl::StrCat("others try too many wrong passwords; wait ", busy_s,
                       " s. Tokens still work, and sessions that have begun"),
          busy_s};
}

Identity UserIdentity(const std::string& user, std::string credential) {
  return {absl::StrCat("user ", user), {Role::kViewer}, {}, {kAll}, 0, std::move(credential)};
}

}  // namespace

absl::StatusOr<Identity> HttpVisitors::Ask(const HttpCaller& caller,
                                           const std::string& bearer) const {
  if (!token_.empty() && EqualInConstantTime(bearer, token_)) {
    Identity owner = OwnerIdentity(kOwnToken);
    owner.credential = kOwnToken;
    return owner;
  }
  if (authenticator_ != nullptr) {
    Presented presented;
    presented.certificate_pem = caller.certificate_pem;
    presented.bearer = bearer;
    presented.peer = caller.peer;
    presented.local = caller.local;
    presented.is_encrypted = caller.is_encrypted;
    return authenticator_->Identify(presented);
  }
  if (token_.empty() && !HasPasswords()) return OwnerIdentity("anybody");
  return absl::UnauthenticatedError(bearer.empty() ? kNeedsToken : kWrongToken);
}

absl::StatusOr<Identity> HttpVisitors::AskPasswords(const HttpCaller& caller,
                                                    const std::string& user,
                                                    const std::string& password) const {
  const auto users = Users();
  if (!caller.is_encrypted && !IsPeerOnThisHost(caller.peer)) {
    return absl::UnauthenticatedError("passwords are accepted over TLS only");
  }
  if (users == nullptr || !users->Check(user, password, NetworkOf(caller.peer))) {
    return absl::UnauthenticatedError("wrong user or password");
  }
  return UserIdentity(user, users->CredentialOf(user));
}

bool HttpVisitors::IsValid(const Identity& identity) const {
  if (identity.credential == kOwnToken) return true;
  if (absl::StartsWith(identity.credential, kPasswordPrefix)) {
    const auto users = Users();
    constexpr absl::string_view kUser = "user ";
    return users != nullptr &&
           users->CredentialOf(identity.name.substr(kUser.size())) == identity.credential;
  }
  return authenticator_ == nullptr || authenticator_->IsStillValid(identity);
}

HttpDenial HttpVisitors::TooMany(const HttpCaller& caller, int blocked_s) {
  return {429, "guessing",
          absl::StrCat("too many failed logins from ", NetworkOf(caller.peer), "; wait ", blocked_s,
                       " s"),
          blocked_s};
}

// What was presented is wrong. Without this limit, a stranger could fill the log.
HttpDenial HttpVisitors::Refuse(const HttpCaller& caller, const absl::Status& status,
                                int64_t now_ns) {
  if (failed_->ShouldLog(caller.peer, now_ns)) {
    spdlog::warn("page: refused a login from {}: {}", caller.peer, std::string(status.message()));
  }
  return {401, "credential", std::string(status.message()), 0};
}

HttpVisitor HttpVisitors::FromPassword(const HttpCaller& caller, const std::string& user,
                                       const std::string& password, int64_t now_ns) {
  const auto users = Users();
  // A scrape that was right before goes on while somebody else guesses behind the same address. The
  // password must have come from this network: otherwise a guesser would learn without a limit
  // which password is in use elsewhere.
  const bool is_known =
      users != nullptr && users->IsRemembered(user, password, NetworkOf(caller.peer));
  if (!is_known) return FromNewPassword(caller, user, password, now_ns);
  auto identity = AskPasswords(caller, user, password);
  if (!identity.ok()) return {std::nullopt, false, Refuse(caller, identity.status(), now_ns)};
  return {std::move(*identity), false, {}};
}

HttpVisitor HttpVisitors::FromNewPassword(const HttpCaller& caller, const std::string& user,
                                          const std::string& password, int64_t now_ns) {
  const int blocked_s = failed_->Begin(caller.peer, now_ns);
  if (blocked_s > 0) return {std::nullopt, false, TooMany(caller, blocked_s)};
  if (const int busy_s = budget_.Begin(now_ns); busy_s > 0) {
    failed_->Succeeded(caller.peer, now_ns);  // nothing was tried
    return {std::nullopt, false, Busy(busy_s)};
  }
  const int64_t before_ns = CpuNs();
  auto identity = AskPasswords(caller, user, password);
  budget_.End(identity.ok(), CpuNs() - before_ns);
  if (!identity.ok()) return {std::nullopt, false, Refuse(caller, identity.status(), now_ns)};
  failed_->Succeeded(caller.peer, now_ns);
  return {std::move(*identity), false, {}};
}

HttpVisitor HttpVisitors::FromToken(const HttpCaller& caller, const std::string& token,
                                    int64_t now_ns) {
  auto identity = Ask(caller, token);
  if (identity.ok()) return {std::move(*identity), false, {}};
  // A right token is always accepted: it is too long to be guessed.
  const int blocked_s = failed_->Begin(caller.peer, now_ns);
  if (blocked_s > 0) return {std::nullopt, false, TooMany(caller, blocked_s)};
  return {std::nullopt, false, Refuse(caller, identity.status(), now_ns)};
}

HttpVisitor HttpVisitors::Identify(const HttpCredentials& credentials, int64_t now_ns) {
  const std::string& header = credentials.authorization;
  if (absl::StartsWithIgnoreCase(header, "Basic ") && HasPasswords()) {
    const auto [user, password] = PairIn(header);
    return FromPassword(credentials.caller, user, password, now_ns);
  }
  // Other schemes are for a proxy in front.
  if (absl::StartsWithIgnoreCase(header, "Bearer ")) {
    return FromToken(credentials.caller, After("Bearer ", header), now_ns);
  }
  auto session = sessions_.Find(credentials.session, now_ns);
  if (session.has_value()) {
    if (IsValid(*session)) return {std::move(session), true, {}};
    sessions_.End(credentials.session);
  }
  auto identity = Ask(credentials.caller, "");
  if (identity.ok()) return {std::move(*identity), false, {}};
  return {std::nullopt, false, {401, "nobody", std::string(identity.status().message()), 0}};
}

bool HttpVisitors::IsStillValid(const HttpCredentials& credentials, const HttpVisitor& visitor,
                                int64_t now_ns) {
  if (visitor.has_session && !sessions_.Find(credentials.session, now_ns).has_value()) return false;
  return visitor.identity.has_value() && IsValid(*visitor.identity);
}

HttpVisitors::Login HttpVisitors::LogIn(const HttpCaller& caller, const std::string& user,
                                        const std::string& secret, int64_t now_ns) {
  Login login;
  HttpVisitor visitor =
      user.empty() ? FromToken(caller, secret, now_ns) : FromPassword(caller, user, secret, now_ns);
  if (!visitor.identity.has_value()) {
    login.denial = std::move(visitor.denial);
    return login;
  }
  login.identity = *std::move(visitor.identity);
  if (!login.identity.Has(Role::kViewer)) {
    login.denial = {403, "role",
                    absl::StrCat("you are ", login.identity.name, ", which may not read this page"),
                    0};
  } else if (!login.identity.credential.empty()) {
    login.session = sessions_.Begin(login.identity, now_ns);
  }
  return login;
}

}  // namespace rollcall
