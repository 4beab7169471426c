// SPDX-License-Identifier: Apache-2.0
// Finds out who sent a request to the page: by a header, a session, a certificate or a connection.
//
// Thread-safe. Time is an argument, in nanoseconds of the steady clock.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/web/http_password_budget.h"
#include "daemon/web/http_sessions.h"
#include "daemon/web/http_site.h"
#include "net/http_types.h"
#include "security/authenticator.h"
#include "security/failed_logins.h"
#include "security/passwords.h"

namespace rollcall {

// What a request presents.
struct HttpCredentials {
  HttpCaller caller;
  std::string authorization;  // the header field
  std::string session;        // the cookie
};

struct HttpVisitor {
  std::optional<Identity> identity;
  bool has_session = false;
  HttpDenial denial;  // where there is no identity: 401 or 429
};

class HttpVisitors {
 public:
  // The users of web.yml; nullptr without that file.
  using PasswordSource = std::function<std::shared_ptr<Passwords>()>;

  // `token` is one that makes its holder the owner, or "". `authenticator` and
  // `failed_logins` must outlive this object. Without `token` and `authenticator`, everybody is the
  // owner. `failed_logins`: nullptr means this object's own.
  HttpVisitors(std::string token, const Authenticator* authenticator, PasswordSource passwords,
               FailedLogins* failed_logins = nullptr,
               const PasswordBudget::Limits& password_limits = {})
      : token_(std::move(token)),
        authenticator_(authenticator),
        passwords_(std::move(passwords)),
        failed_(failed_logins == nullptr ? &own_failed_ : failed_logins),
        budget_(password_limits) {}

  HttpVisitor Identify(const HttpCredentials& credentials, int64_t now_ns);
  // Whether the same request would be accepted now. For streams.
  bool IsStillValid(const HttpCredentials& credentials, const HttpVisitor& visitor, int64_t now_ns);

  struct Login {
    HttpDenial denial;
    Identity identity;
    std::string session;  // secret of the new session; empty means the connection itself is enough
  };
  // Begins a session for the holder of a token; or, where `user` is not "", of a password.
  Login LogIn(const HttpCaller& caller, const std::string& user, const std::string& secret,
              int64_t now_ns);
  void LogOut(const std::string& session) { sessions_.End(session); }
  bool HasPasswords() const { return Users() != nullptr && !Users()->empty(); }

 private:
  absl::StatusOr<Identity> Ask(const HttpCaller& caller, const std::string& bearer) const;
  absl::StatusOr<Identity> AskPasswords(const HttpCaller& caller, const std::string& user,
                                        const std::string& password) const;
  bool IsValid(const Identity& identity) const;
  std::shared_ptr<Passwords> Users() const { return passwords_ ? passwords_() : nullptr; }
  HttpVisitor FromToken(const HttpCaller& caller, const std::string& token, int64_t now_ns);
  HttpVisitor FromPassword(const HttpCaller& caller, const std::string& user,
                           const std::string& password, int64_t now_ns);
  HttpVisitor FromNewPassword(const HttpCaller& caller, const std::string& user,
                              const std::string& password, int64_t now_ns);
  HttpDenial Refuse(const HttpCaller& caller, const absl::Status& status, int64_t now_ns);
  HttpDenial TooMany(const HttpCaller& caller, int blocked_s);

  const std::string token_;
  const Authenticator* const authenticator_;
  const PasswordSource passwords_;
  HttpSessions sessions_;
  FailedLogins own_failed_;
  FailedLogins* const failed_;
  PasswordBudget budget_;
};

}  // namespace rollcall
