// SPDX-License-Identifier: Apache-2.0
// Logging in to the page and out of it: the form, the cookie, and addresses with a token.
#pragma once

#include <httplib.h>

#include <functional>
#include <string>

#include "daemon/server/http_visitor.h"

namespace rollcall {

inline constexpr char kSessionCookie[] = "rollcall_session";

class HttpLogin {
 public:
  // Told of each refusal, for the metric.
  using Refused = std::function<void(const HttpDenial& denial)>;

  // `visitors` must outlive this object.
  HttpLogin(HttpVisitors* visitors, Refused refused)
      : visitors_(visitors), refused_(std::move(refused)) {}

  // Adds /login, its files, and /logout.
  void AddTo(httplib::Server* server);
  // Sends a browser from any address to the form.
  static void SendToForm(const httplib::Request& request, httplib::Response* response);
  // Exchanges the token in "/?token=T" for a session, so that no link keeps it.
  void TakeTokenOfAddress(const httplib::Request& request, httplib::Response* response);

 private:
  void ShowForm(int status, const std::string& problem, httplib::Response* response) const;
  void ShowProblem(const httplib::Request& request, const HttpDenial& denial,
                   httplib::Response* response) const;
  void LogIn(const httplib::Request& request, httplib::Response* response);
  void LogOut(const httplib::Request& request, httplib::Response* response);
  HttpVisitors::Login Begin(const std::string& user, const std::string& secret);

  HttpVisitors* const visitors_;
  const Refused refused_;
};

}  // namespace rollcall
