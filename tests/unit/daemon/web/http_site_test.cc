// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rollcall {
namespace {

using testing::HasSubstr;

TEST(HttpSiteTest, KnowsItsOwnNamesAndAddresses) {
  const HttpHosts hosts({"node-17", "*.nodes.example"});
  for (const char* own :
       {"localhost", "localhost:7656", "LOCALHOST:1", "127.0.0.1:9", "[::1]:7656", "10.2.3.4",
        "[2001:db8::1]", "node-17:7656", "Node-17.", "a.nodes.example", "more.example:443"}) {
    EXPECT_TRUE(hosts.Knows(own, {"more.example"})) << own;
  }
  for (const char* other :
       {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
        "node-17.evil.example", "a.b.nodes.example", ".nodes.example", "nodes.example", "[::1",
        "[::1]x", "node-17:80:80", "node-17@evil:80", "127.0.0.1:x", "1.2.3", "0x7f.1"}) {
    EXPECT_FALSE(hosts.Knows(other, {})) << other;
  }
}

TEST(HttpSiteTest, TellsHowToAddAName) {
  HttpSiteFields fields;
  fields.host = "page.example:7656";
  const HttpDenial denial = CheckHost(HttpHosts({}), {}, fields);
  EXPECT_EQ(denial.status, 421);
  EXPECT_THAT(denial.text, HasSubstr("--http-host=page.example"));
  EXPECT_EQ(CheckHost(HttpHosts({"page.example"}), {}, fields).status, 0);
  fields.host = "";
  EXPECT_EQ(CheckHost(HttpHosts({}), {}, fields).status, 421);
}

struct Case {
  const char* what;
  HttpSiteFields fields;
  int status;
};

HttpSiteFields Get(std::string site, std::string mode) {
  return {false, false, "node:80", "", std::move(site), std::move(mode), "", false, false};
}
HttpSiteFields Load(std::string mode, std::string destination) {
  HttpSiteFields fields = Get("same-origin", std::move(mode));
  fields.fetch_dest = std::move(destination);
  return fields;
}
HttpSiteFields Post(std::string origin, std::string site = "", bool is_encrypted = false) {
  return {true, is_encrypted, "node:80", std::move(origin), std::move(site), "", "", true, false};
}
HttpSiteFields Form(std::string origin, std::string site) {
  return {true, false, "node:80", std::move(origin), std::move(site), "navigate", "", false, true};
}

TEST(HttpSiteTest, OtherSitesNeitherReadNorPost) {
  HttpSiteFields without_header = Post("");
  without_header.has_our_header = false;
  for (const Case& c : std::vector<Case>{
           {"a script without a browser", Get("", ""), 0},
           {"the page", Get("same-origin", "cors"), 0},
           {"a typed address", Get("none", "navigate"), 0},
           {"a link from elsewhere", Get("cross-site", "navigate"), 0},
           {"a fetch from elsewhere", Get("cross-site", "no-cors"), 403},
           {"an image elsewhere", Get("cross-site", "no-cors"), 403},
           {"curl with the header", Post(""), 0},
           {"a POST without the header", without_header, 403},
           {"the page's POST", Post("http://node:80", "same-origin"), 0},
           {"a proxy with TLS in front", Post("https://node:80", "same-origin"), 0},
           {"the page's POST by TLS", Post("https://node:80", "same-origin", true), 0},
           {"a plain page of the same name", Post("http://node:80", "", true), 403},
           {"another port", Post("http://node:81"), 403},
           {"another site", Post("http://evil.example"), 403},
           {"a name that begins like ours", Post("http://node:80.evil.example"), 403},
           {"a sandbox", Post("null"), 403},
           {"what the browser calls another site", Post("", "cross-site"), 403},
           {"a sibling", Post("", "same-site"), 403},
           {"the address of the page", Post("https://rollcall.example", "same-origin"), 0},
           {"the login form", Form("http://node:80", "same-origin"), 0},
           {"the login form of an old browser", Form("", ""), 0},
           {"the login form without a referrer", Form("null", "same-origin"), 0},
           {"a login form elsewhere", Form("http://evil.example", "cross-site"), 403},
           {"a login form in a sandbox", Form("null", "cross-site"), 403},
           {"a login form in a sandbox of an old browser", Form("null", ""), 403}}) {
    EXPECT_EQ(CheckSite(c.fields, "https://rollcall.example/page").status, c.status) << c.what;
  }
}

TEST(HttpSiteTest, OnlyAWindowLoadsAnAddressThatLogsIn) {
  for (const Case& c : std::vector<Case>{
           {"a script without a browser", Load("", ""), 0},
           {"a window", Load("navigate", "document"), 0},
           {"a window of a browser that does not say what it loads", Load("navigate", ""), 0},
           {"a frame", Load("navigate", "iframe"), 403},
           {"a plug-in", Load("navigate", "object"), 403},
           {"an image", Load("no-cors", "image"), 403},
           {"an image of a browser that does not say what it loads", Load("no-cors", ""), 403},
           {"a fetch", Load("cors", "empty"), 403}}) {
    EXPECT_EQ(CheckLoginAddress(c.fields).status, c.status) << c.what;
  }
}

}  // namespace
}  // namespace rollcall
