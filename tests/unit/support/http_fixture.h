// SPDX-License-Identifier: Apache-2.0
// A real server of the page with made-up answers and identities.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/web/http.h"
#include "fake_queries.h"
#include "test_authority.h"

namespace rollcall {

// Knows tokens that are the names of roles, and certificates by their text.
class FakeAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!presented.certificate_pem.empty() && presented.certificate_pem == certificate) {
      return Make("certificate", Role::kOperator);
    }
    const auto role = ParseRole(presented.bearer);
    if (role.has_value() && revoked_.count(presented.bearer) == 0) {
      return Make("token " + presented.bearer, *role);
    }
    return absl::UnauthenticatedError("unknown token");
  }
  bool IsStillValid(const Identity& identity) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return revoked_.count(identity.name.substr(std::string("token ").size())) == 0;
  }
  void Revoke(const std::string& token) {
    const std::lock_guard<std::mutex> lock(mutex_);
    revoked_.insert(token);
  }

  std::string certificate;

 private:
  static Identity Make(const std::string& name, Role role) {
    return {name, {role}, {}, {"default"}, 0, name};
  }
  mutable std::mutex mutex_;
  std::set<std::string> revoked_;
};

class HttpAccessTest : public testing::Test {
 protected:
  void Start() {
    options_.authenticator = &authenticator_;
    options_.audit = [this](const AuditEntry& entry) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        audit_.push_back(absl::StrCat(entry.who, " ", entry.action, " ", entry.object));
      }
      EXPECT_THAT(entry.peer, testing::StartsWith("ipv4:127.0.0.1:"));
    };
    options_.refused_action = [this](const AuditEntry& entry) {
      const std::lock_guard<std::mutex> lock(mutex_);
      audit_.push_back(absl::StrCat(entry.who, " refused: ", entry.action, " ", entry.object));
    };
    options_.refused = [this](std::string_view reason) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++refused_[std::string(reason)];
    };
    server_ = std::make_unique<HttpServer>(&queries_, options_);
    const absl::Status status = server_->Start("127.0.0.1:0");
    ASSERT_TRUE(status.ok()) << status;
    client_ = Connect();
  }
  std::unique_ptr<httplib::Client> Connect() const {
    auto client = std::make_unique<httplib::Client>(
        absl::StrCat(server_->has_tls() ? "https://" : "http://", server_->address()));
    client->enable_server_certificate_verification(false);
    client->set_keep_alive(true);
    return client;
  }
  void UseTls() {
    TlsSettings settings;
    const TestPair pair = authority_.Issue("DNS:page.example");
    settings.certificate_pem = pair.certificate_pem;
    settings.key_pem = pair.key_pem;
    settings.client_ca_pem = authority_.pem();
    const auto made = TlsContext::Make(settings);
    ASSERT_TRUE(made.ok());
    options_.tls = [context = *made] { return context; };
  }

  static httplib::Headers As(const std::string& token) {
    if (token.empty()) return {};
    return {{"Authorization", "Bearer " + token}};
  }
  httplib::Result Get(const std::string& path, const httplib::Headers& headers = {}) {
    return client_->Get(path, headers);
  }
  httplib::Result Post(const std::string& path, httplib::Headers headers = {}) {
    headers.insert({"X-Rollcall", "1"});
    return client_->Post(path, headers, "", "text/plain");
  }
  httplib::Result LogIn(const std::string& token) {
    return client_->Post("/login", httplib::Params{{"token", token}});
  }
  // The header that carries the session of this answer.
  static httplib::Headers SessionOf(const httplib::Result& answer) {
    const std::string cookie = answer->get_header_value("Set-Cookie");
    return {{"Cookie", cookie.substr(0, cookie.find(';'))}};
  }

  std::vector<std::string> audit() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return audit_;
  }
  int refused(const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return refused_[reason];
  }

 private:
  // The server's threads write these, so they are older than server_.
  std::mutex mutex_;
  std::vector<std::string> audit_;
  std::map<std::string, int> refused_;

 protected:
  const OpensslAuthority authority_;
  FakeQueries queries_;
  FakeAuthenticator authenticator_;
  HttpServerOptions options_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<httplib::Client> client_;
};

}  // namespace rollcall
