// SPDX-License-Identifier: Apache-2.0
// The files of the login page. They need no build, and the page works without its script.
#pragma once

#include <string>

namespace rollcall {

// `note` is shown above the form; it may be empty. `with_user` asks for a user, too. The field of
// the token has the content `token`.
std::string LoginPage(const std::string& note, bool with_user, const std::string& token);

extern const char kLoginPolicy[];  // Content-Security-Policy
extern const char kLoginStyle[];
extern const char kLoginScript[];

}  // namespace rollcall
