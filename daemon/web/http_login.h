// SPDX-License-Identifier: Apache-2.0
// Logging in to the page and out of it: the form, the cookie, and addresses with a token.
#pragma once

#include <httplib.h>

#include <functional>
#include <string>
#include <utility>

#include "daemon/web/http_visitor.h"

namespace rollcall {

class HttpLogin {
 public:
  // The login calls it at each refusal, for the metric.
  using Refused = std::function<void(const HttpDenial& denial)>;

  // `visitors` must outlive this object. `page_url` is as in HttpServerOptions.
  HttpLogin(HttpVisitors* visitors, std::string page_url, Refused refused)
      : visitors_(visitors), page_url_(std::move(page_url)), refused_(std::move(refused)) {}

  // To be called before the first request.
  void SetCookieName(std::string name) { cookie_name_ = std::move(name); }
  const std::string& cookie_name() const { return cookie_name_; }

  // Adds /login, its files, and /logout.
  void AddTo(httplib::Server* server);
  // Sends a browser from any address to the form.
  static void SendToForm(const httplib::Request& request, httplib::Response* response);
  // Exchanges the token in "/?token=T" for a session, so that no link keeps it. If a page of
  // another site sent the browser here, a person must confirm it first: that page could have put in
  // a token of its own.
  void TakeTokenOfAddress(const httplib::Request& request, httplib::Response* response);

 private:
  void ShowForm(int status, const std::string& note, const std::string& token,
                httplib::Response* response) const;
  void ShowProblem(const httplib::Request& request, const HttpDenial& denial,
                   httplib::Response* response) const;
  void LogIn(const httplib::Request& request, httplib::Response* response);
  void LogOut(const httplib::Request& request, httplib::Response* response);
  HttpVisitors::Login Begin(const std::string& user, const std::string& secret);
  bool IsByTls(const httplib::Request& request) const;
  void SetCookie(const httplib::Request& request, const std::string& session,
                 httplib::Response* response) const;

  HttpVisitors* const visitors_;
  const std::string page_url_;
  std::string cookie_name_;
  const Refused refused_;
};

}  // namespace rollcall
