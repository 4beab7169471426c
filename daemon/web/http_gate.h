// SPDX-License-Identifier: Apache-2.0
// Decides for each request to the page whether it is served, and for whom.
#pragma once

#include <httplib.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/web/http_login.h"
#include "daemon/web/http_options.h"
#include "daemon/web/http_router.h"
#include "daemon/web/http_site.h"
#include "daemon/web/http_visitor.h"

namespace rollcall {

class HttpGate {
 public:
  // `options` must outlive this object.
  HttpGate(const HttpServerOptions& options, HttpVisitors::PasswordSource passwords);

  // Adds the routes of the login, and the check of every request.
  void AddTo(HttpRouter* server);
  // To be called before the first request. `host` and `port` are those that the server listens on.
  // `tls` is empty without TLS.
  void Open(const std::string& host, int port, TlsSource tls);

 private:
  using Handled = httplib::Server::HandlerResponse;

  Handled Admit(const httplib::Request& request, httplib::Response* response);
  HttpDenial CheckSource(const HttpSiteFields& fields) const;
  Handled AdmitVisitor(const httplib::Request& request, const Role* role,
                       httplib::Response* response);
  Handled Refuse(const HttpDenial& denial, httplib::Response* response) const;
  void Count(const HttpDenial& denial) const;
  Handled RefuseAddress(const httplib::Request& request, httplib::Response* response) const;
  void TellOfRefusal(const httplib::Request& request, Role needed) const;
  std::function<bool()> GuardStream(const HttpExchange& exchange);

  const HttpServerOptions& options_;
  HttpVisitors visitors_;
  HttpLogin login_;
  HttpHosts hosts_{{}};
  TlsSource tls_;
};

}  // namespace rollcall
