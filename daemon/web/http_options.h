// SPDX-License-Identifier: Apache-2.0
// How the page is served, and to whom.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/access/audit.h"
#include "net/http_types.h"
#include "security/authenticator.h"
#include "security/certificates/tls_context.h"
#include "security/failed_logins.h"

namespace rollcall {

struct HttpServerOptions {
  int connections = 256;  // limit of simultaneous ones
  // A token that makes its holder the owner, as in the address that `rollcall run` prints, or
  // empty.
  std::string token;
  // Finds out who callers are; must outlive the server. If nullptr, holders of `token` are owners,
  // and every caller is one if there is no token and no user in `web_config`.
  const Authenticator* authenticator = nullptr;
  // Counts failed logins, also those by gRPC; must outlive the server. nullptr means the page's
  // own.
  FailedLogins* failed_logins = nullptr;
  TlsSource tls;           // empty for plaintext, unless `web_config` has TLS
  std::string web_config;  // path of a web.yml, or empty
  // More names by which browsers may ask for the page. They may always use the host of the listen
  // address, a name in the certificate, and, unless the page listens on loopback, the host's name.
  std::vector<std::string> hosts;
  // The page's address as people type it, where that is the address of a proxy; empty without a
  // proxy. If it begins with https, browsers speak TLS to the proxy, and the login's cookie is
  // "Secure".
  std::string page_url;
  bool is_insecure = false;  // of --insecure: the page warns its viewers
  AuditSink audit;           // thread-safe; may be empty
  AuditSink refused_action;  // an action of a known caller; likewise
  // Receives each refusal by its reason ("host", "origin", "nobody", "credential", "guessing",
  // "role"), for a metric; thread-safe; may be empty.
  std::function<void(std::string_view reason)> refused;
  // Receives each stream of changes that a viewer does not get, or loses, because that viewer has
  // most of them; thread-safe; may be empty.
  HttpOverShare over_share;
  // Why the daemon is not healthy; empty if it is. Does not block; may be empty.
  std::function<std::string()> problem;
};

}  // namespace rollcall
