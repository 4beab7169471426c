// SPDX-License-Identifier: Apache-2.0
// Which web site a request comes from: keeps pages of other sites from using a browser's login
// (forged requests), and from reading answers by a name of their own that leads here (DNS
// rebinding). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

// Why a request is refused. `status` is 0 if it is not.
struct HttpDenial {
  int status = 0;
  std::string reason;  // for the metric: "host", "origin", ...
  std::string text;    // for people: what failed and what to do; without a line end at its end
  int retry_after_s = 0;
};

// The names that lead to this page. "*.example" stands for one label.
class HttpHosts {
 public:
  explicit HttpHosts(std::vector<std::string> names) : names_(std::move(names)) {}

  // Whether a browser that sends this Host header has found the page by a name that others do not
  // control: localhost, an IP address, one of the names, or one of `more`. Ports do not matter,
  // because tunnels change them.
  bool Knows(std::string_view header, const std::vector<std::string>& more) const;

 private:
  std::vector<std::string> names_;
};

// "node" of "Node.:7656", "::1" of "[::1]:80"; "" if the header is malformed.
std::string HostIn(std::string_view header);

// Returns the host and port in "https://rollcall.example/page"; "" if it is not such an address.
std::string AuthorityIn(std::string_view url);

// Header fields of a request; "" where a field is missing.
struct HttpSiteFields {
  bool is_post = false;
  bool is_encrypted = false;  // this connection uses TLS
  std::string host, origin, fetch_site, fetch_mode, fetch_dest;
  bool has_our_header = false;
  bool is_form = false;  // a form sends it, which cannot add a header
};

// `page_url` is the address of the page as people know it, behind a proxy; empty without one.
HttpDenial CheckHost(const HttpHosts& hosts, const std::vector<std::string>& more,
                     const HttpSiteFields& fields);
HttpDenial CheckSite(const HttpSiteFields& fields, const std::string& page_url);
// Checks an address that logs in ("/?token=T"): only a window may load it, because a page could
// load it unseen, as an image or in a frame, and so make people use a login of its choice. Scripts
// and old browsers, which send no Sec-Fetch fields, pass.
HttpDenial CheckLoginAddress(const HttpSiteFields& fields);

}  // namespace rollcall
