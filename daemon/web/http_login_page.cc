// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/http_login_page.h"

#include "absl/strings/str_cat.h"
#include "daemon/report/escape.h"

namespace rollcall {
namespace {

constexpr char kHead[] = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Log in · Rollcall</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="login.css">
<script src="login.js" defer></script>
</head>
<body>
<main>
<h1>Rollcall</h1>
)";

constexpr char kUser[] = R"(<label for="user">User (leave it empty for a token)</label>
<input id="user" name="user" autocomplete="username" autocapitalize="none" spellcheck="false">
)";

constexpr char kSecret[] = R"( name="token" type="password" autocomplete="current-password"
 required autofocus>
<button>Log in</button>
</form>
<p>A token begins with <code>rollcall_</code>. The operator of this daemon makes one with
<code>rollcall token new</code>. The page of <code>rollcall run</code> has a token in the address
that the command prints.</p>
</main>
</body>
</html>
)";

}  // namespace

const char kLoginPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

// The colours of the page's own style.
const char kLoginStyle[] = R"(:root {
  color-scheme: light dark;
  --text: #1a1f27;
  --soft: #525c6b;
  --back: #ffffff;
  --card: #f3f5f8;
  --bad: #a3160f;
  --bad-back: #fdecea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e9ee;
    --soft: #a5afbd;
    --back: #12151a;
    --card: #1b2028;
    --bad: #ff9d94;
    --bad-back: #3a1613;
  }
}
body {
  margin: 0;
  font: 15px/1.5 system-ui, sans-serif;
  color: var(--text);
  background: var(--back);
}
main {
  max-width: 24rem;
  margin: 4rem auto;
  padding: 0 1rem;
}
form {
  display: grid;
  gap: 0.5rem;
}
input,
button {
  font: inherit;
  color: var(--text);
  background: var(--back);
  border: 1px solid var(--soft);
  border-radius: 0.3rem;
  padding: 0.35rem 0.5rem;
}
button {
  background: var(--card);
  cursor: pointer;
}
p {
  color: var(--soft);
}
.problem {
  background: var(--bad-back);
  color: var(--bad);
  padding: 0.5rem 0.8rem;
  border-radius: 0.3rem;
}
)";

// After a link from another site the browser has kept the session back; a request of this page has
// it. The part of the address behind "#" names the view.
const char kLoginScript[] = R"(fetch("api/v1/whoami").then((response) => {
  if (response.ok) location.replace("./" + location.hash);
});
document.querySelector("form").action = "login" + location.hash;
)";

std::string LoginPage(const std::string& note, bool with_user, const std::string& token) {
  const std::string alert = note.empty() ? ""
                                         : absl::StrCat("<p class=\"problem\" role=\"alert\">",
                                                        EscapeHtml(note), "</p>\n");
  const std::string value = token.empty() ? "" : absl::StrCat(" value=\"", EscapeHtml(token), "\"");
  return absl::StrCat(kHead, alert, "<form method=\"post\" action=\"login\">\n",
                      with_user ? kUser : "", "<label for=\"token\">",
                      with_user ? "Token or password" : "Token", "</label>\n<input id=\"token\"",
                      value, kSecret);
}

}  // namespace rollcall
