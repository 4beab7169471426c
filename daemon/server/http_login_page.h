// SPDX-License-Identifier: Apache-2.0
// The files of the login page. They need no build, and the page works without its script.
#pragma once

#include <string>

namespace rollcall {

// `problem` is shown above the form; "": none. `with_user` asks for a user, too.
std::string LoginPage(const std::string& problem, bool with_user);

extern const char kLoginPolicy[];  // Content-Security-Policy
extern const char kLoginStyle[];
extern const char kLoginScript[];

}  // namespace rollcall
